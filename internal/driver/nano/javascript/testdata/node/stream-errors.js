const {Readable,Writable,pipeline}=require('stream');
pipeline(new Readable({read(){this.destroy(new Error('src'))}}),new Writable({write(c,e,cb){cb()}}),e=>console.log('cb',e.message));
const w=new Writable({write(c,e,cb){cb(new Error('wfail'))}});w.on('error',e=>console.log('error',e.message));w.on('close',()=>console.log('closed'));w.write('x');
const z=new Writable({write(c,e,cb){cb()}});z.end();z.on('error',e=>console.log(e.code,e.message));z.write('late');
