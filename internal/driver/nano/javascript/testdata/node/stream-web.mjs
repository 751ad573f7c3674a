import {text,json,buffer} from 'stream/consumers';import {Readable} from 'stream';
console.log(await text(Readable.from(['a','b'])),await json(Readable.from(['{"a":','1}'])),await buffer(Readable.from([Buffer.from('x')])));
const web=Readable.toWeb(Readable.from(['q']));console.log(await Array.fromAsync(web));
const n=Readable.fromWeb(new ReadableStream({start(c){c.enqueue('z');c.close()}}));for await(const c of n)console.log(c);
const cs=new CompressionStream('gzip');const wr=cs.writable.getWriter();wr.write(new TextEncoder().encode('hello'));wr.close();const d=new DecompressionStream('gzip');console.log(await new Response(cs.readable.pipeThrough(d)).text());
