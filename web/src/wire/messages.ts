// Messages between this client and a host, as bytes and back. Messages of a host are checked here, once; an event that
// is not in the table is of a newer host, and left out.

import { PROTOCOL_VERSION } from './generated/constants'
import { HOST_MESSAGES, LOOKING, LOOKING_BY_SESSION, type Requests } from './generated/messages'
import { pack } from './msgpack'
import { eventDecoder, type MessageOf } from './shape'

/** A message of a host; with a tag, the one of that name. */
export type HostMessage<T extends keyof typeof HOST_MESSAGES = keyof typeof HOST_MESSAGES> = MessageOf<
  typeof HOST_MESSAGES,
  T
>

export type RequestTag = keyof Requests
export type RequestFields<T extends RequestTag> = Requests[T]['fields']
export type AnswerTo<T extends RequestTag> = HostMessage<Requests[T]['answer']>

/** One message of a host, without its length; null: an event that this client does not know. */
export const decodeHostMessage = eventDecoder(HOST_MESSAGES, 'host')

export function encodeRequest<T extends RequestTag>(
  tag: T,
  id: number,
  fields: RequestFields<T>,
): Uint8Array {
  return pack({ t: tag, id, ...fields })
}

/** About an open connection to a port: sent by both ends, not answered, and not signed, because its opening was. */
export type ForwardMessage = HostMessage<'forward_data' | 'forward_room' | 'forward_end' | 'forward_closed'>

export function encodeForwardMessage(message: ForwardMessage): Uint8Array {
  return pack(message)
}

export function encodeHello(operator: string, client: string): Uint8Array {
  return pack({ t: 'hello', versions: [PROTOCOL_VERSION], operator, client, capabilities: ['progress'] })
}

/** A request that this version does not know counts as one that changes something. */
export function mustBeSigned(tag: string): boolean {
  return !LOOKING.has(tag)
}

/** Whether it goes through the channel of the session it is about; the rest is asked of the host. */
export function goesBySession(tag: string): boolean {
  return mustBeSigned(tag) || LOOKING_BY_SESSION.has(tag)
}
