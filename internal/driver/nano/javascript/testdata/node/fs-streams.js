const fs=require('fs');
fs.createReadStream('missing').on('error',e=>console.log('err',e.code,e.message)).on('close',()=>console.log('closed'));
const r=fs.createReadStream(__filename,{start:0,end:9});r.setEncoding('utf8');r.on('data',d=>console.log(JSON.stringify(d)));
