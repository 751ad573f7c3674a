// A proxy that shows a key: the conformance kit of the Model Context Protocol sends none. It prints its port.
// usage: node proxy.mjs ADDRESS KEY
import http from 'node:http'

const [target, key] = process.argv.slice(2)
const daemon = new URL(target)
const server = http.createServer((request, response) => {
  const own = `127.0.0.1:${server.address().port}`
  // The proxy's own name stands for the daemon's; every other name goes on as it is.
  const names = [own, own.replace('127.0.0.1', 'localhost')]
  const host = names.includes(request.headers.host) ? daemon.host : request.headers.host
  const headers = { ...request.headers, authorization: `Bearer ${key}`, host }
  if (names.some((name) => request.headers.origin === `http://${name}`)) headers.origin = daemon.origin
  const sent = http.request(
    {
      host: daemon.hostname,
      port: daemon.port,
      path: request.url,
      method: request.method,
      headers,
    },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    },
  )
  sent.on('error', () => response.destroy())
  response.on('close', () => sent.destroy())
  request.pipe(sent)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
