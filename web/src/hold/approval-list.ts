// What waits for approval on one machine, and what was decided lately: as its host listed it, updated by its events.

import { signal } from '@preact/signals-core'
import type { ApprovalInfo } from './api'
import type { AnswerTo, HostMessage, RequestFields, RequestTag } from '../wire/messages'

interface KnownApproval {
  info: ApprovalInfo
  by: string // who took the last step, by name; '' when that was not seen, and when nobody did
  note: string // what was said with it
}

type Ask = <T extends RequestTag>(tag: T, fields: RequestFields<T>) => Promise<AnswerTo<T>>

export class ApprovalList {
  readonly known = signal<KnownApproval[]>([])

  constructor(private readonly ask: Ask) {}

  listed(approvals: readonly ApprovalInfo[]): void {
    const before = new Map(this.known.peek().map((each) => [each.info.id, each]))
    this.known.value = approvals.map((info) => {
      const seen = before.get(info.id)
      return seen && seen.info.status === info.status ? { ...seen, info } : { info, by: '', note: '' }
    })
  }

  onHostMessage(message: HostMessage): void {
    if (message.t === 'approval_event') this.put(message.approval, message.actor, message.note)
    else if (message.t === 'dropped') void this.refresh().catch(() => undefined)
  }

  /** Ask the host now: it says what changed in a session since something was asked. */
  async refresh(): Promise<void> {
    this.listed((await this.ask('approvals', {})).approvals)
  }

  async decide(tag: 'approve' | 'deny', approval: string, note: string, seen: string): Promise<ApprovalInfo> {
    const answer = await this.ask(tag, { approval, note, seen })
    const known = this.known.peek().find(({ info }) => info.id === approval)
    // Its event may have come first, with the actor's name.
    if (known?.info.status !== answer.approval.status) this.put(answer.approval, '', note)
    return answer.approval
  }

  private put(info: ApprovalInfo, by: string, note: string): void {
    const all = this.known.peek()
    const put = { info, by, note }
    this.known.value = all.some((each) => each.info.id === info.id)
      ? all.map((each) => (each.info.id === info.id ? put : each))
      : [...all, put]
  }
}
