import { part, type CallOptions, type Transport } from './http.js'
import type { Listed, PortList, PortsClosed, Preview } from './schema.js'

export interface PreviewOptions extends CallOptions {
  /** How many seconds the address holds: an hour by default, 7 days at most. */
  ttlSeconds?: number | undefined
  /** Lets its pages load scripts, images and data from other hosts. */
  external?: boolean | undefined
}

/** The ports of a space on which its programs listen. */
export class Ports {
  constructor(
    private readonly http: Transport,
    private readonly space: string,
  ) {}

  /** Lists the ports on which a program listens, and those that are open. */
  async list(options: CallOptions = {}): Promise<Listed[]> {
    return (await this.http.json<PortList>({ ...options, path: this.base })).ports
  }

  /** Makes an address of a port. Everybody who has it reaches the program that listens, until it ends. */
  async preview(port: number, options: PreviewOptions = {}): Promise<Preview> {
    const { ttlSeconds, external, ...call } = options
    const json = { ...(ttlSeconds === undefined ? {} : { ttl_seconds: ttlSeconds }), ...(external === undefined ? {} : { external }) }
    return this.http.json<Preview>({ ...call, method: 'POST', path: `${this.base}/${port}/preview`, json })
  }

  /** Closes a port: its connections end, and its addresses are not valid any more. Returns how often it was open. */
  async close(port: number, options: CallOptions = {}): Promise<number> {
    return (await this.http.json<PortsClosed>({ ...options, method: 'DELETE', path: `${this.base}/${port}` })).closed
  }

  private get base(): string {
    return `/v1/spaces/${part(this.space)}/ports`
  }
}
