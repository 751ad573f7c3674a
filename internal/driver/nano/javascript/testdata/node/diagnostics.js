const dc=require('diagnostics_channel');const ch=dc.channel('c');ch.subscribe((m,n)=>console.log(m,n));console.log(ch.hasSubscribers);ch.publish({x:1});
