// Makes docs/SDK-TYPESCRIPT.md from the sources: every exported name with its signature and its comment, in the order of the index.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const here = dirname(dirname(fileURLToPath(import.meta.url)))
const entries = { '@agentbox/sdk': 'index', '@agentbox/sdk/testing': 'testing', '@agentbox/sdk/ai': 'ai', '@agentbox/sdk/openai-agents': 'openai-agents', '@agentbox/sdk/mcp': 'mcp' }
const config = ts.readConfigFile(join(here, 'tsconfig.json'), ts.sys.readFile).config
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, here)
const program = ts.createProgram(Object.values(entries).map((e) => join(here, 'src', `${e}.ts`)), { ...options, noEmit: true })
const checker = program.getTypeChecker()
const printer = ts.createPrinter({ removeComments: true })

const told = (node) => {
  const parts = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)
  return ts.getTextOfJSDocComment(parts.at(-1)?.comment)?.replace(/\s+/g, ' ').trim() ?? ''
}
const hidden = (node) => {
  const flags = ts.getCombinedModifierFlags(node)
  return (flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0 || (node.name && ts.isPrivateIdentifier(node.name))
}
const print = (node) => printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile())
const inferred = (node) => checker.typeToString(checker.getTypeAtLocation(node), node, ts.TypeFormatFlags.NoTruncation)

/** signature is a declaration without its body, on one line. */
function signature(node) {
  const parameters = (node.parameters ?? []).map((p) => print(p)).join(', ')
  if (ts.isConstructorDeclaration(node)) return `constructor(${parameters})`
  if (ts.isGetAccessor(node)) return `get ${node.name.getText()}: ${node.type ? print(node.type) : inferred(node)}`
  if (ts.isMethodDeclaration(node) || ts.isFunctionDeclaration(node)) {
    const types = node.typeParameters ? `<${node.typeParameters.map(print).join(', ')}>` : ''
    const modifiers = (node.modifiers ?? []).filter((m) => m.kind === ts.SyntaxKind.StaticKeyword).map((m) => `${m.getText()} `).join('')
    const result = node.type ? print(node.type) : checker.typeToString(checker.getReturnTypeOfSignature(checker.getSignatureFromDeclaration(node)))
    return `${modifiers}${node.name.getText()}${types}(${parameters}): ${result}`
  }
  const mark = node.questionToken ? '?' : ''
  return `${node.name.getText()}${mark}: ${node.type ? print(node.type) : inferred(node)}`
}

const oneLine = (text) => text.replace(/\s+/g, ' ').trim()
const out = [
  '# The TypeScript SDK, name by name',
  '',
  '<!-- Made by make generate from sdk/typescript/src; do not edit. -->',
  '',
  'How to use it stands in [SDK.md](SDK.md). Options that several calls share are listed at their own type.',
]

function member(node) {
  if (node.name.getText() === 'http') return // how requests are sent is not part of the surface
  const comment = told(node)
  out.push(`- \`${oneLine(signature(node))}\`${comment ? `<br>${comment}` : ''}`)
}

function declaration(name, node) {
  out.push('', `### ${name}`, '')
  const comment = told(node)
  if (comment) out.push(comment, '')
  if (ts.isClassDeclaration(node)) {
    const base = node.heritageClauses?.find((h) => h.token === ts.SyntaxKind.ExtendsKeyword)
    out.push('```ts', `class ${name}${base ? ` ${print(base)}` : ''}`, '```', '')
    for (const m of node.members) {
      if (ts.isConstructorDeclaration(m)) {
        if (!hidden(m)) for (const p of m.parameters) if (ts.isParameterPropertyDeclaration(p, m) && !hidden(p)) member(p)
        continue
      }
      if (m.name && !hidden(m) && !ts.isComputedPropertyName(m.name) && !(ts.isMethodDeclaration(m) && ['toString'].includes(m.name.getText()))) member(m)
    }
  } else if (ts.isInterfaceDeclaration(node)) {
    const base = node.heritageClauses?.map(print).join(' ')
    out.push('```ts', `interface ${name}${base ? ` ${base}` : ''}`, '```', '')
    for (const m of node.members) if (m.name && !ts.isComputedPropertyName(m.name)) member(m)
  } else if (ts.isTypeAliasDeclaration(node)) {
    out.push('```ts', oneLine(print(node)).replace(/^export /, ''), '```')
  } else if (ts.isFunctionDeclaration(node)) {
    out.push('```ts', `function ${oneLine(signature(node))}`, '```')
  } else throw new Error(`${name} is of a kind that the reference does not know`)
}

const seen = new Set()
for (const [page, entry] of Object.entries(entries)) {
  out.push('', `## ${page}`)
  const source = program.getSourceFile(join(here, 'src', `${entry}.ts`))
  for (const exported of checker.getExportsOfModule(checker.getSymbolAtLocation(source))) {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    const node = symbol.declarations?.[0]
    if (!node || ts.isSourceFile(node) || exported.name === 'default') continue // the types of the schema stand in the API document
    if (seen.has(symbol)) continue
    seen.add(symbol)
    declaration(exported.name, node)
  }
}
const file = join(here, '../../docs/SDK-TYPESCRIPT.md')
const text = `${out.join('\n').replace(/\n{3,}/g, '\n\n')}\n`
if (readFileSync(file, { encoding: 'utf8', flag: 'a+' }) !== text) writeFileSync(file, text)
