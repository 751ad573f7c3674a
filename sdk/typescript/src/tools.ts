import { AgentboxError, ApprovalRequiredError, PolicyDeniedError, TimeoutError } from './errors.js'
import type { Space, ExecOptions } from './space.js'

/** A tool that a model may call: a name, a description, JSON Schema of its input, and what it does. */
export interface Tool {
  name: string
  description: string
  schema: { type: 'object'; properties: Record<string, unknown>; required: string[]; additionalProperties: false }
  execute(input: Record<string, unknown>, options?: { signal?: AbortSignal | undefined }): Promise<string>
}

export interface ToolOptions extends Pick<ExecOptions, 'onApproval'> {
  /** The most characters of an answer; what is beyond is left out in the middle. 30,000 unless given. */
  maxCharacters?: number
  /**
   * Milliseconds until a call is cancelled and the model is told so; 300,000 unless given. Where policy asks a person, onApproval is asked;
   * without it a call waits that long for an answer from elsewhere.
   */
  timeoutMs?: number
}

/**
 * tools gives a space to a model: run_command, run_python, run_javascript, read_file, write_file, list_files. A refusal is an answer that
 * tells the model what was refused, why, and what to do instead; it never ends the agent's loop.
 */
export function tools(space: Space, options: ToolOptions = {}): Tool[] {
  const { maxCharacters = 30_000, timeoutMs = 300_000, onApproval = () => 'wait' as const } = options
  const string = (description: string): object => ({ type: 'string', description })
  const make = (
    name: string,
    description: string,
    properties: Record<string, object>,
    run: (input: Record<string, string>, signal: AbortSignal | undefined) => Promise<string>,
    optional: string[] = [],
  ): Tool => ({
    name,
    description,
    schema: { type: 'object', properties, required: Object.keys(properties).filter((p) => !optional.includes(p)), additionalProperties: false },
    async execute(input, call = {}) {
      const missing = Object.entries(input).find(([p, v]) => !(p in properties) || typeof v !== 'string')
      if (missing) return `error: ${missing[0]} is no text field of ${name}`
      for (const p of Object.keys(properties)) {
        if (!optional.includes(p) && input[p] === undefined) return `error: ${name} needs ${p}`
      }
      try {
        return shorten(await run(input as Record<string, string>, call.signal), maxCharacters)
      } catch (err) {
        if (!(err instanceof TimeoutError)) return told(err)
        if (err.runId) await space.cancel(err.runId)
        const why = 'it did not end in time and was cancelled; perhaps a person had to decide and did not'
        return told(new TimeoutError(why, { code: err.code }))
      }
    },
  })
  const command = async (text: string, signal: AbortSignal | undefined): Promise<string> => {
    const done = await space.exec(text, { signal, onApproval, timeoutMs })
    return [done.stdout, done.stderr && `stderr:\n${done.stderr}`, !done.ok && `exit code ${done.exitCode}`, done.limit && `ended at its limit ${done.limit}`]
      .filter(Boolean)
      .join('\n')
  }
  const cell = async (language: 'python' | 'javascript', code: string, signal: AbortSignal | undefined): Promise<string> => {
    const done = await space.code(code, { language, signal, onApproval, timeoutMs })
    const shown = done.displays.filter((d) => !d.mimeType.startsWith('text/plain')).map((d) => `shown: ${d.mimeType}, ${d.sizeBytes} bytes`)
    return [done.stdout.trimEnd(), ...shown, done.stderr && `stderr:\n${done.stderr}`, !done.ok && `exit code ${done.exitCode}`]
      .filter(Boolean)
      .join('\n')
  }
  return [
    make('run_command', 'Run a command in bash, in the folder of the space. There is no network.', { command: string('the command') }, (i, s) =>
      command(i['command'] ?? '', s),
    ),
    make('run_python', 'Run Python in an interpreter that keeps its variables. The value of the last line comes back.', { code: string('Python') }, (i, s) =>
      cell('python', i['code'] ?? '', s),
    ),
    make(
      'run_javascript',
      'Run JavaScript or TypeScript in an interpreter that keeps its variables. The value of the last line comes back.',
      { code: string('JavaScript or TypeScript') },
      (i, s) => cell('javascript', i['code'] ?? '', s),
    ),
    make('read_file', 'Read a text file of the space.', { path: string('relative to the top of the space') }, (i, signal) =>
      space.files.readText(i['path'] ?? '', { signal }),
    ),
    make('write_file', 'Write a text file of the space, as a whole.', { path: string('relative to the top of the space'), content: string('the whole text') }, async (i, signal) => {
      const entry = await space.files.write(i['path'] ?? '', i['content'] ?? '', { signal })
      return `wrote ${entry.path}, ${entry.size_bytes} bytes`
    }),
    make(
      'list_files',
      'List a folder of the space with everything in it.',
      { folder: string('relative to the top of the space; the top unless given') },
      async (i, signal) => {
        const found = await space.files.list(i['folder'] ?? '', { recursive: true, signal })
        const shown = found.filter((e) => !e.path.startsWith('.agentbox'))
        return shown.map((e) => `${e.path}${e.type === 'directory' ? '/' : `\t${e.size_bytes}`}`).join('\n') || 'there are no files'
      },
      ['folder'],
    ),
  ]
}

/** told says an error in the one form that a model reads: what was refused, by which rule, and what to do instead. */
export function told(err: unknown): string {
  if (!(err instanceof AgentboxError)) throw err
  const kind =
    err instanceof PolicyDeniedError ? 'denied' : err instanceof ApprovalRequiredError ? `waits for a person (${err.approvalId})` : 'error'
  return `${kind}: ${err.message}\nrule: ${err.code}${err.suggestion ? `\ninstead: ${err.suggestion}` : ''}`
}

function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const half = Math.floor(most / 2)
  return `${text.slice(0, half)}\n[${text.length - 2 * half} characters left out]\n${text.slice(-half)}`
}
