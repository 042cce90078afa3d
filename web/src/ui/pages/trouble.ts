// What went wrong, as a page: a title that says what happened, a sentence why, and what to do. One entry
// per code; what the host or the protocol half said is shown below it.

interface TroublePage {
  readonly code: string
  readonly title: string
  readonly why: string
  readonly todo: string
}

const PAGES: Record<string, Omit<TroublePage, 'code'>> = {
  bad_link: {
    title: 'This link is not whole',
    why: 'An invite link ends in a secret after the # sign. Here it is missing or was cut.',
    todo: 'Copy the whole link, up to its last character, or scan the QR code.',
  },
  wrong_relay: {
    title: 'This link is for another relay',
    why: 'The page was opened at one relay and the link names another.',
    todo: 'Open the link itself instead of copying its end to this address.',
  },
  expired: {
    title: 'This link has expired',
    why: 'An invite is good for a limited time, and that time has passed.',
    todo: 'Ask for a new one. On the machine, for a device of yours: `hold invite --all --role admin`.',
  },
  used_up: {
    title: 'This link was used already',
    why: 'As many devices as it was for have come in by it, and this is another one.',
    todo: 'Ask for one of your own. If nobody else should have used it, look at `hold device ls` on the machine.',
  },
  invalid: {
    title: 'The machine does not know this invite',
    why: 'It was taken back, it was closed after too many wrong codes, or a character of the link is missing.',
    todo: 'Check that the link is whole, or ask for a new one.',
  },
  revoked: {
    title: 'This device was shut out',
    why: 'Somebody who may do so took back what this device was given. Its key is not accepted any more.',
    todo: 'Ask who runs the machine. With a new invite this device comes in under a new name.',
  },
  access_expired: {
    title: 'The access of this device has ended',
    why: 'What it was given counted until a time that has passed.',
    todo: 'Ask for a new invite.',
  },
  not_permitted: {
    title: 'You may not see this session',
    why: 'What this device was given does not reach it.',
    todo: 'Ask somebody who may invite others for a link to it.',
  },
  not_found: {
    title: 'There is no such session',
    why: 'No session of this machine has this name or id, or it is not yours to see.',
    todo: 'The overview lists those there are.',
  },
  no_machine: {
    title: 'This device does not know that machine',
    why: 'It has not come in there by an invite, or the machine was forgotten here.',
    todo: 'Open an invite link of that machine on this device.',
  },
  ended: {
    title: 'This session has ended',
    why: 'Its main process is gone. It cannot come back to life; what it left behind can still be read.',
    todo: 'Start a new one, or look at its last screen.',
  },
  fenced: {
    title: 'This session is fenced',
    why: 'Its host could not renew the lease that lets it act, so the session stands still there and takes no input.',
    todo: 'It goes on when the host holds the lease again, or on the host that took it over. This page keeps trying.',
  },
  offline: {
    title: 'The machine cannot be reached',
    why: 'No relay leads to it at the moment. Its sessions run on without you.',
    todo: 'This page keeps trying, and goes on where it was.',
  },
  unreachable: {
    title: 'The relay or the machine does not answer',
    why: 'Nothing was used up: the link is as good as before.',
    todo: 'Check the network and try again. The machine must be running: `hold up`.',
  },
  lost: {
    title: 'There is no such page',
    why: 'The address is not one of this app.',
    todo: 'Go to the overview.',
  },
  other: {
    title: 'That did not work',
    why: '',
    todo: 'Try again. If it stays so, `hold doctor` on the machine says what is wrong with it.',
  },
}

// Codes of docs/errors.md, and reasons of a join, that mean one of the pages above.
const SAME: Record<string, string> = {
  used: 'used_up',
  invite_used: 'used_up',
  invite_expired: 'expired',
  invite_invalid: 'invalid',
  actor_revoked: 'revoked',
  grant_revoked: 'revoked',
  grant_expired: 'access_expired',
  envelope_expired: 'access_expired',
  grant_invalid: 'not_permitted',
  no_such_session: 'not_found',
  ambiguous_name: 'not_found',
  no_such_machine: 'no_machine',
  session_ended: 'ended',
  relay_unreachable: 'unreachable',
  host_down: 'offline',
  host_lost: 'offline',
}

export function troublePage(code: string): TroublePage {
  const name = PAGES[code] ? code : (SAME[code] ?? 'other')
  return { code: name, ...PAGES[name]! }
}
