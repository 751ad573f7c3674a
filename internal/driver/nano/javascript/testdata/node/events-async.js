const {EventEmitter,once,on}=require('events');const e=new EventEmitter();
(async()=>{setTimeout(()=>e.emit('go',1,2),1);console.log(await once(e,'go'));
setTimeout(()=>{e.emit('t','a');e.emit('t','b');e.emit('t','end')},1);for await(const [v] of on(e,'t')){console.log(v);if(v==='end')break}
setTimeout(()=>e.emit('error',new Error('bad')),1);try{await once(e,'x')}catch(x){console.log(x.message)}
const ac=new AbortController();setTimeout(()=>ac.abort(),1);try{await once(e,'x',{signal:ac.signal})}catch(x){console.log(x.name,x.code,x.message)}})();
