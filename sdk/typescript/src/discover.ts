import { AgentboxError } from './errors.js'

/** Where a daemon serves, and the key with which it is asked. */
export interface Found {
  url: string
  key: string
  /** Says where both were found. */
  from: string
}

/**
 * discover finds a daemon as the command line does: AGENTBOX_URL and AGENTBOX_KEY, else the daemon of AGENTBOX_HOME or ~/.agentbox, whose
 * owner key only its user can read. A variable that is set and empty is an error. Options win over variables, and a given home does so too.
 * The key of the local owner goes to the local daemon only.
 */
export async function discover(given: { url?: string | undefined; key?: string | undefined; home?: string | undefined } = {}): Promise<Found> {
  const env: Record<string, string | undefined> = typeof process === 'undefined' ? {} : process.env
  for (const name of ['AGENTBOX_URL', 'AGENTBOX_KEY', 'AGENTBOX_HOME']) {
    if (env[name] === '') throw new AgentboxError(`${name} is set and empty`, { code: 'usage', suggestion: `unset ${name}, or give it a value` })
  }
  const url = given.url ?? (given.home === undefined ? env['AGENTBOX_URL'] : undefined)
  const key = given.key ?? (given.home === undefined ? env['AGENTBOX_KEY'] : undefined)
  if (url && key) return { url, key, from: given.url ? 'the options' : 'AGENTBOX_URL' }
  if (typeof process === 'undefined' || !process.versions?.node) {
    throw new AgentboxError('there is no local daemon to find here', { code: 'usage', suggestion: 'give the client url and key' })
  }
  const [fs, path] = await Promise.all([import('node:fs/promises'), import('node:path')])
  const folder = given.home ?? (await home())
  const read = async (name: string, what: string): Promise<string> => {
    try {
      return await fs.readFile(path.join(folder, name), 'utf8')
    } catch (err) {
      throw new AgentboxError(`${what} cannot be read from ${folder}`, { code: 'daemon_not_running', suggestion: 'start a daemon with: agentbox up', cause: err })
    }
  }
  const noKey = (why = '', cause?: unknown): AgentboxError =>
    new AgentboxError(`no key for ${url}${why}`, { code: 'key_missing', suggestion: 'give the client a key, or set AGENTBOX_KEY', cause })
  const text = await read('daemon.json', "the daemon's address").catch((err: unknown) => {
    throw url ? noKey('', err) : err
  })
  const state = JSON.parse(text) as { addr: string; pid: number }
  if (url && hostOf(url) !== state.addr) throw noKey(`; the local owner's key goes to http://${state.addr} only`)
  if (!lives(state.pid)) {
    throw new AgentboxError(`the daemon of ${folder} (process ${state.pid}) has ended`, { code: 'daemon_not_running', suggestion: 'start a daemon with: agentbox up' })
  }
  return { url: url ?? `http://${state.addr}`, key: key ?? (await read('owner.key', "the owner's key")).trim(), from: folder }
}

/** hostOf is the host and the port of an address; undefined where it is none. */
function hostOf(address: string): string | undefined {
  try {
    return new URL(address).host
  } catch {
    return undefined
  }
}

/** home is the data directory of the local daemon. */
export async function home(): Promise<string> {
  const [os, path] = await Promise.all([import('node:os'), import('node:path')])
  return process.env['AGENTBOX_HOME'] ?? path.join(os.homedir(), '.agentbox')
}

/** lives says whether a process lives. */
export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (err) {
    return (err as { code?: string }).code === 'EPERM'
  }
}
