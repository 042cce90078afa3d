// Texts of error pages: what happened, why, and what to do. One entry per code; the original message is shown
// below it.

interface ErrorText {
  readonly code: string
  readonly title: string
  readonly why: string
  readonly todo: string
}

const PAGES: Record<string, Omit<ErrorText, 'code'>> = {
  bad_link: {
    title: 'This link is incomplete',
    why: 'An invite link ends with a secret after the # sign. Here it is missing or cut off.',
    todo: 'Copy the whole link, up to its last character, or scan the QR code.',
  },
  wrong_relay: {
    title: 'This link is for another relay',
    why: 'The page was opened at one relay and the link names another.',
    todo: 'Open the link itself instead of copying its end to this address.',
  },
  expired: {
    title: 'This link has expired',
    why: 'An invite is valid for a limited time, and that time has passed.',
    todo: 'Ask for a new one. To add a device of your own, run on the machine: `hold invite --all --role admin`.',
  },
  used_up: {
    title: 'This link was already used',
    why: 'As many devices as it allows have joined with it.',
    todo: 'Ask for a new one. If nobody else should have used it, check `hold device ls` on the machine.',
  },
  invalid: {
    title: 'The machine does not know this invite',
    why: 'It was revoked, it was closed after too many wrong codes, or a character of the link is missing.',
    todo: 'Check that the link is complete, or ask for a new one.',
  },
  revoked: {
    title: 'This device was revoked',
    why: 'Someone revoked the access of this device. Its key is no longer accepted.',
    todo: 'Ask whoever runs the machine. With a new invite this device can join under a new name.',
  },
  session_revoked: {
    title: 'Your access to this session was revoked',
    why: 'Someone took away what this device may do here. The session goes on without it.',
    todo: 'Ask whoever gave you access. The overview lists the sessions you can see.',
  },
  access_expired: {
    title: 'The access of this device has expired',
    why: 'It was granted until a time that has passed.',
    todo: 'Ask for a new invite.',
  },
  not_permitted: {
    title: 'You do not have access to this session',
    why: 'The access of this device does not cover it.',
    todo: 'Ask someone who can invite others for a link to it.',
  },
  not_found: {
    title: 'No such session',
    why: 'No session on this machine has this name or id, or you do not have access to it.',
    todo: 'The overview lists the sessions you can see.',
  },
  no_approval: {
    title: 'Nothing waits for approval here',
    why: 'It was settled some time ago, or it is in a session that this device may not see.',
    todo: 'The overview lists what waits for you.',
  },
  no_actor: {
    title: 'No such actor',
    why: 'No actor of your unix user on this machine has this name, or had it.',
    todo: 'The panel of a session lists the operators that are known on its machine. On it: `hold actor ls`.',
  },
  no_machine: {
    title: 'Unknown machine',
    why: 'This device has not joined it, or the machine was forgotten here.',
    todo: 'Open an invite link for that machine on this device.',
  },
  ended: {
    title: 'This session has ended',
    why: 'Its main process has exited. The session cannot be brought back, but its record can still be read.',
    todo: 'Start a new one, or look at its last screen.',
  },
  session_asleep: {
    title: 'This session is asleep',
    why: 'Nothing of it runs; its checkpoint has its processes and their memory.',
    todo: '`hold restore NAME` on the machine brings it back, under the same id.',
  },
  session_lost: {
    title: 'This session was lost',
    why: 'How it would have ended is not known, nor whether what was in flight took effect. Its record can still be read.',
    todo: '`hold show` on the machine lists everything that is known of it.',
  },
  fenced: {
    title: 'This session is fenced',
    why: 'Its host could not renew the lease that lets it act, so the session is frozen and refuses input.',
    todo: 'It continues when the host holds the lease again, or on the host that took it over. This page keeps trying.',
  },
  offline: {
    title: 'The machine is unreachable',
    why: 'No relay has a connection to it right now. That alone ends no session.',
    todo: 'This page keeps trying, and picks up where it left off.',
  },
  unreachable: {
    title: 'The relay or the machine does not answer',
    why: 'The link was not used up: it is still valid.',
    todo: 'Check the network and try again. The machine must be running: `hold up`.',
  },
  lost: {
    title: 'No such page',
    why: 'The app has no page at this address.',
    todo: 'Go to the overview.',
  },
  other: {
    title: 'Something went wrong',
    why: '',
    todo: 'Try again. If it keeps failing, run `hold doctor` on the machine.',
  },
}

// Codes of docs/errors.md, and reasons of a join, that mean one of the pages above.
const SAME: Record<string, string> = {
  used: 'used_up',
  invite_used: 'used_up',
  invite_expired: 'expired',
  invite_invalid: 'invalid',
  actor_revoked: 'revoked',
  access_revoked: 'session_revoked',
  grant_revoked: 'revoked',
  grant_expired: 'access_expired',
  envelope_expired: 'access_expired',
  grant_invalid: 'not_permitted',
  no_such_session: 'not_found',
  ambiguous_name: 'not_found',
  no_such_approval: 'no_approval',
  no_such_actor: 'no_actor',
  no_such_machine: 'no_machine',
  session_ended: 'ended',
  relay_unreachable: 'unreachable',
  host_down: 'offline',
  host_lost: 'offline',
}

export function errorText(code: string): ErrorText {
  const name = PAGES[code] ? code : (SAME[code] ?? 'other')
  return { code: name, ...PAGES[name]! }
}
