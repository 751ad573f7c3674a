const {Duplex,Transform,PassThrough,Readable}=require('stream');
const d=new Duplex({read(){this.push('r');this.push(null)},write(c,e,cb){console.log('w',c.toString());cb()}});d.on('data',c=>console.log('d',c.toString()));d.on('end',()=>console.log('end'));d.on('finish',()=>console.log('finish'));d.write('1');d.end();
class Count extends Transform{constructor(){super({objectMode:true});this.n=0}_transform(c,e,cb){this.n++;this.push({c,n:this.n});cb()}_flush(cb){this.push({total:this.n});cb()}}
const c=new Count();c.on('data',x=>console.log(x));c.write('a');c.write('b');c.end();
