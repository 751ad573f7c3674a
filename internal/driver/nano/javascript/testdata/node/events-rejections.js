const EventEmitter=require('events');
const e=new EventEmitter({captureRejections:true});e.on('x',async()=>{throw new Error('async')});e.on('error',er=>console.log('caught',er.message));e.emit('x');
const o=Object.create(EventEmitter.prototype);EventEmitter.call(o);o.on('q',function(){console.log(this===o)});o.emit('q');
console.log(EventEmitter.listenerCount(o,'q'),typeof EventEmitter.once,EventEmitter.errorMonitor);
const et=new EventTarget();et.addEventListener('foo',e=>console.log(e.type,e instanceof Event,e.target===et),{once:true});et.dispatchEvent(new Event('foo'));et.dispatchEvent(new Event('foo'));
console.log(EventEmitter.getEventListeners(o,'q').length);
