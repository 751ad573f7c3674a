const {PassThrough}=require('stream');const p=new PassThrough();p.setEncoding('utf8');
p.write(Buffer.from([0xe2,0x82]));p.write(Buffer.from([0xac]));p.end();p.on('data',d=>console.log(d));
const a=new PassThrough(),b=new PassThrough();a.pipe(b);b.on('pipe',()=>console.log('pipe'));b.on('unpipe',()=>console.log('unpipe'));a.unpipe(b);a.pipe(b);b.on('data',d=>console.log(String(d)));a.end('last');b.on('end',()=>console.log('bend'));
