import type { Agentbox, Run, Space, schema } from '../src/index.js'

/** What the examples of the pages find around them. */
export interface Given {
  client: Agentbox
  space: Space
  run: Run
  bytes: Uint8Array
  confirm: (question: schema.PolicyApproval) => Promise<boolean>
}
