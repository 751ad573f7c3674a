const rs=new ReadableStream({start(c){c.enqueue('a');c.enqueue('b');c.close()}});
for await(const x of rs)console.log(x);
const ts=new TransformStream({transform(c,k){k.enqueue(c*2)}});const w=ts.writable.getWriter();w.write(1);w.write(2);w.close();const rd=ts.readable.getReader();let r;while(!(r=await rd.read()).done)console.log(r);console.log(r);
const ws=new WritableStream({write(c){console.log('w',c)},close(){console.log('closed')}});await ReadableStream.from([1,2]).pipeTo(ws);
const [a,b]=ReadableStream.from(['t']).tee();console.log(await Array.fromAsync(a),await Array.fromAsync(b));
console.log(await new Response('x').text().catch(e=>e.message));
