// The operator's end of the channel to a host: the two messages that begin it, and what goes through it after that.

import { concat, domain, equal, readU64, unhex, u64, utf8 } from './bytes'
import type { Agreement, Crypto, Signer } from './crypto'
import { checkDevice, type Device } from './device'
import { broken, handshakeFailed, HoldError } from './errors'
import type { EpochFloor } from './epoch-floor'
import { CHANNEL_GRANT_MAX_BYTES, RecordKind } from './generated/constants'
import { Handshake, IK, IK_PSK1 } from './noise'
import { type Opened, RecordLayer } from './record-layer'
import { genesis, InputChain } from './signed-input'

const CHANNEL_DOMAIN = domain('holdfast channel v1')
const VERSION = 1
const SECOND_BYTES = 1 + 8 + 1 + 8 + 32

interface HandshakeSettings {
  session: string // what inputs are signed for: the session, or the host's channel id
  stream: string // 32 hexadecimal digits, new for every channel
  signer: Signer
  me: Device
  static: Agreement
  ephemeral: Agreement
  host: Device // from a place that is trusted
  floor: EpochFloor
  grant?: Uint8Array
  psk?: Uint8Array
  prologue?: Uint8Array // another one than the session's, for a device that is not known yet
}

export function channelPrologue(session: string): Uint8Array {
  return concat(CHANNEL_DOMAIN, utf8(session))
}

export class OperatorHandshake {
  private readonly noise: Handshake

  private constructor(
    crypto: Crypto,
    private readonly options: HandshakeSettings,
  ) {
    this.noise = new Handshake(crypto, options.psk ? IK_PSK1 : IK, {
      initiator: true,
      static: options.static,
      ephemeral: options.ephemeral,
      remoteStatic: options.host.static,
      prologue: options.prologue ?? channelPrologue(options.session),
      ...(options.psk ? { psk: options.psk } : {}),
    })
  }

  static async begin(crypto: Crypto, options: HandshakeSettings): Promise<OperatorHandshake> {
    if ((options.grant?.length ?? 0) > CHANNEL_GRANT_MAX_BYTES) {
      throw new HoldError('invalid_argument', `a grant has at most ${CHANNEL_GRANT_MAX_BYTES} bytes`)
    }
    await checkDevice(crypto, options.host)
    return new OperatorHandshake(crypto, options)
  }

  /** Message 1. */
  async first(): Promise<Uint8Array> {
    const { me, stream, floor, grant, psk } = this.options
    const said = concat(
      new Uint8Array([VERSION]),
      me.key,
      me.signature,
      unhex(stream),
      u64(floor.highest),
      grant ?? new Uint8Array(0),
    )
    return concat(new Uint8Array([psk ? 2 : 1]), await this.noise.write(said))
  }

  /** The channel, from message 2. */
  async finish(message: Uint8Array, now: number): Promise<OperatorChannel> {
    const said = await this.noise.read(message)
    if (said.length !== SECOND_BYTES) throw handshakeFailed("the host's answer is malformed")
    if (said[0] !== VERSION) {
      throw new HoldError('version_mismatch', `the peer's channel has version ${said[0]}; ours is ${VERSION}`)
    }
    const epoch = readU64(said, 1)
    const known = said[9] as number
    if (known > 1) throw handshakeFailed("the host's answer is malformed")
    const { session, stream, signer, floor } = this.options
    floor.rise(epoch)
    const start = genesis(session, signer.public, stream)
    if (readU64(said, 10) !== 0 || !equal(said.subarray(18), start.head)) {
      // Every channel has a stream of its own: a host that already has inputs of it has someone else's.
      throw new HoldError(
        'input_unknown',
        "the host's record of this client's inputs does not match",
        'check the screen, then continue',
      )
    }
    const ciphers = await this.noise.split()
    const recordLayer = new RecordLayer(ciphers, this.noise.hash, now, { speaksFirst: true })
    const chain = new InputChain(signer, { session, epoch, channel: this.noise.hash, stream })
    return new OperatorChannel(epoch, recordLayer, chain)
  }
}

/** The operator's end. `write`, `say` and `poll` share one queue of the caller's, `receive` has another. */
export class OperatorChannel {
  constructor(
    readonly epoch: number,
    readonly recordLayer: RecordLayer,
    private readonly chain: InputChain,
  ) {}

  /** One input, signed, as records. */
  async write(payload: Uint8Array, now: number): Promise<Uint8Array[]> {
    return this.recordLayer.seal(RecordKind.INPUT, await this.chain.sign(payload), now)
  }

  /** One unsigned message. */
  async say(body: Uint8Array, now: number): Promise<Uint8Array[]> {
    return this.recordLayer.seal(RecordKind.MESSAGE, body, now)
  }

  /** A key, a mark or a message of the host. Records for the channel itself are handled here. */
  async receive(record: Uint8Array, now: number): Promise<Opened | null> {
    const opened = await this.recordLayer.open(record, now)
    if (opened === null) return null
    try {
      if (opened.kind === RecordKind.ACCEPTED && opened.body.length === 8) {
        this.chain.accepted(readU64(opened.body, 0))
        return null
      }
      if (
        opened.kind !== RecordKind.OUTPUT_KEY &&
        opened.kind !== RecordKind.OUTPUT_MARK &&
        opened.kind !== RecordKind.MESSAGE
      ) {
        throw broken('a host does not send records of this kind')
      }
    } catch (error) {
      throw this.recordLayer.breaks(error as HoldError)
    }
    return opened
  }
}
