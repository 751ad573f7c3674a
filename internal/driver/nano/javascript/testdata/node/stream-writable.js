const {Writable}=require('stream');
const w=new Writable({highWaterMark:3,write(c,e,cb){console.log('write',c.toString(),e);setTimeout(cb,1)},final(cb){console.log('final');cb()}});
console.log(w.write('ab'),w.write('cd'),w.writableLength,w.writableNeedDrain);w.on('drain',()=>{console.log('drain');w.end('z')});w.on('finish',()=>console.log('finish',w.writableFinished));w.on('close',()=>console.log('close',w.destroyed));
