const {Readable}=require('stream');
const r=Readable.from(['abc','defg'],{objectMode:false});r.on('readable',()=>{let c;while((c=r.read(2))!==null)console.log('got',c.toString())});r.on('end',()=>console.log('end'));
