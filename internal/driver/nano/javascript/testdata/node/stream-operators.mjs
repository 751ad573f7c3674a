import {Readable} from 'stream';
const r=Readable.from([1,2,3,4,5]);
console.log(await r.filter(x=>x%2).map(async x=>x*10).toArray());
console.log(await Readable.from([1,2,3]).reduce((a,b)=>a+b,0),await Readable.from([1,2,3,4]).take(2).toArray(),await Readable.from([1,2,3]).drop(1).toArray());
console.log(await Readable.from([1,2]).flatMap(x=>[x,x]).toArray(),await Readable.from([1,2,3]).some(x=>x>2),await Readable.from([1,2,3]).every(x=>x>2),await Readable.from([1,2,3]).find(x=>x>1));
await Readable.from([7]).forEach(x=>console.log(x));
