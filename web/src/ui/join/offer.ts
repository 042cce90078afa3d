// What an invite gives, in words: who invites to what, what the device may then do, and until when. Pure.

import type { InviteOffer } from '../../hold/api'
import { span } from '../text/durations'
import { can, reachLine } from '../text/rights'

export interface OfferText {
  readonly title: string
  readonly where: string
  readonly may: readonly string[]
  readonly mayNot: string // one line; empty when it may do everything
  readonly lasts: string
  readonly link: string
}

export function offerText(offer: InviteOffer): OfferText {
  const { may, mayNot } = can(offer.rights)
  const session = offer.session_name || reachLine(offer.reach)
  return {
    title: `${offer.invited_by} invites you to ${session}`,
    where: `on ${offer.host_name}`,
    may,
    mayNot: mayNot.length > 0 ? `not ${mayNot.join(', ')}` : '',
    lasts: `${span(offer.lasts_s)} from when you join, unless it is revoked before`,
    link: offer.uses_left === 1 ? 'works once' : `works for ${offer.uses_left} more devices`,
  }
}
