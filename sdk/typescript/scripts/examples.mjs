// Writes each TypeScript block of the pages as a module of build/examples' source, which is then checked and run by test/examples.test.ts.
// A block that cannot run has a comment in front of it that begins with "not run:" and says why.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(dirname(fileURLToPath(import.meta.url)))
const out = join(here, 'test/examples')
const pages = { readme: join(here, 'README.md'), sdk: join(here, '../../docs/SDK.md') }

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const index = []
for (const [page, file] of Object.entries(pages)) {
  const lines = readFileSync(file, 'utf8').split('\n')
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(\w+)/.exec(lines[at])?.[1]
    if (language === undefined) continue
    const end = lines.indexOf('```', at + 1)
    if (end < 0) throw new Error(`${file}:${at + 1}: the block has no end`)
    const left = /^<!-- not run: .{10,} -->$/.test(lines[at - 1] ?? '')
    if (!left && language === 'sh') throw new Error(`${file}:${at + 1}: a block of commands is not run; say why: <!-- not run: why -->`)
    if (!left && (language === 'ts' || language === 'typescript')) {
      const body = lines.slice(at + 1, end)
      const imports = body.filter((l) => l.startsWith('import '))
      const rest = body.filter((l) => !l.startsWith('import '))
      const own = new Set(rest.flatMap((l) => [...l.matchAll(/^(?:await using|const|let) (\w+)/g)].map((m) => m[1])))
      const given = ['client', 'space', 'run', 'bytes', 'confirm'].filter((name) => !own.has(name))
      const specifier = (l) => l.replace(/'@agentbox\/sdk(\/[\w-]+)?'/, (_, part) => `'../../src/${part ? part.slice(1) : 'index'}.js'`)
      const name = `${page}-${at + 1}`
      const text = [
        `// ${page === 'readme' ? 'README.md' : 'docs/SDK.md'}, line ${at + 1}`,
        ...imports.map(specifier),
        "import type { Given } from '../given.js'",
        `export default async function example({ ${given.join(', ')} }: Given): Promise<void> {`,
        ...given.map((g) => `  void ${g}`),
        ...rest.map((l) => (l === '' ? '' : `  ${l}`)),
        '}',
        '',
      ].join('\n')
      // Two blocks may import the same name; an example that only imports has nothing to run but its imports.
      writeFileSync(join(out, `${name}.ts`), imports.length > 0 && rest.every((l) => l === '') ? onlyImports(text, imports) : text)
      index.push(name)
    }
    at = end
  }
}
writeFileSync(join(out, 'index.ts'), `export const examples = ${JSON.stringify(index)}\n`)

/** onlyImports gives each imported name another one, for a block that shows alternatives. */
function onlyImports(text, imports) {
  let n = 0
  const names = []
  const renamed = text.replace(/^import \{ (\w+) \} from '\.\.\/\.\.\/src/gm, (line, name) => {
    names.push(`${name}${++n}`)
    return line.replace(`{ ${name} }`, `{ ${name} as ${name}${n} }`)
  })
  if (names.length !== imports.length) throw new Error('an import is not understood')
  return renamed.replace(/\n\}\n$/, `\n  for (const f of [${names.join(', ')}]) if (typeof f !== 'function') throw new Error('it is no function')\n}\n`)
}
