import {Readable,Writable,addAbortSignal,compose} from 'stream';
const ac=new AbortController();const r=addAbortSignal(ac.signal,new Readable({read(){}}));setTimeout(()=>ac.abort(),2);
try{for await(const c of r);}catch(e){console.log(e.name,e.code)}
const w=new Writable({objectMode:true,write(o,e,cb){console.log(o);cb()}});w.write({a:1});w.cork();w.write(1);w.write(2);w.uncork();w.end(()=>console.log('ended'));
try{w.write(null)}catch(e){console.log(e.code,e.message)}
