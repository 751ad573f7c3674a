import {pipeline,finished} from 'stream/promises';import {Readable,Transform,PassThrough} from 'stream';
await pipeline(Readable.from([1,2,3]),async function*(s){for await(const x of s)yield x*2},async s=>{for await(const x of s)console.log(x)});
const p=new PassThrough();p.end('hi');p.resume();await finished(p);console.log('fin',p.readableEnded,p.destroyed);
try{await pipeline(Readable.from(['a']),new Transform({transform(c,e,cb){cb(new Error('t'))}}),async s=>{for await(const x of s);})}catch(e){console.log(e.message)}
