/**
 * Notices of spot interruptions: EventBridge sends them to a queue two minutes before AWS takes an instance away.
 *
 * Source: "Spot Instance interruption notices" and "EC2 instance rebalance recommendations" of EC2's user guide.
 */

import { isJsonObject, objectAt, sleep, stringAt, type Call, type Clock, type JsonValue } from '@nodepool/core';
import type { Connection } from './client/connection.js';
import { loadSqs } from './client/libraries.js';

/** Time for which one call waits for messages (SQS: at most 20 seconds). */
const WAIT_SECONDS = 20;
/** Maximum number of messages per call (SQS). */
const MESSAGES = 10;
/** Time for which a notice is remembered (ms): terminated instances are listed for an hour. */
const REMEMBER_MS = 7_200_000;
/** Interval after a failed call (ms). */
const RETRY_MS = 10_000;

export const INTERRUPTION = 'EC2 Spot Instance Interruption Warning';

export class Interruptions {
  /** Time of the notice (monotonic, ms) by instance id. */
  private readonly notices = new Map<string, number>();
  private isFailing = false;

  constructor(
    private readonly connection: Connection,
    private readonly queue: string | undefined,
    private readonly clock: Clock,
  ) {}

  /** Returns true if AWS is about to take the instance away, or has done so. */
  has(instanceId: string): boolean {
    return this.notices.has(instanceId);
  }

  /** Receives notices until the signal aborts. Resolves at once without a queue. */
  async watch(makeCall: () => Call): Promise<void> {
    const { queue } = this;
    if (queue === undefined) return;
    for (let call = makeCall(); !call.signal.aborted; call = makeCall()) {
      try {
        await this.receive(queue, call);
        if (this.isFailing) call.log.info('The queue of spot interruptions answers again');
        this.isFailing = false;
      } catch (error) {
        await this.pause(error, call);
      }
    }
  }

  private async pause(error: unknown, { signal, log }: Call): Promise<void> {
    if (signal.aborted) return;
    if (!this.isFailing) {
      log.warn('Could not read the queue of spot interruptions; they are noticed in the list of instances', { error });
    }
    this.isFailing = true;
    await sleep(this.clock, RETRY_MS, signal).catch(() => undefined);
  }

  private async receive(QueueUrl: string, call: Call): Promise<void> {
    const { Messages = [] } = await this.connection.send(
      { service: 'sqs', action: 'ReceiveMessage', timeoutMs: (WAIT_SECONDS + 30) * 1000 },
      call,
      (sdk, options) =>
        sdk.sqs.send(
          new (loadSqs().ReceiveMessageCommand)({
            QueueUrl,
            WaitTimeSeconds: WAIT_SECONDS,
            MaxNumberOfMessages: MESSAGES,
          }),
          options,
        ),
    );
    for (const { Body } of Messages) {
      const id = interruptedIn(Body ?? '');
      if (id === undefined || this.notices.has(id)) continue;
      this.notices.set(id, this.clock.monotonic());
      call.log.warn('AWS takes a spot instance away within two minutes', { external_id: id });
    }
    this.forgetOld();
    if (Messages.length === 0) return;
    const Entries = Messages.flatMap(({ ReceiptHandle }, index) =>
      ReceiptHandle === undefined ? [] : [{ Id: String(index), ReceiptHandle }],
    );
    await this.connection.send({ service: 'sqs', action: 'DeleteMessageBatch' }, call, (sdk, options) =>
      sdk.sqs.send(new (loadSqs().DeleteMessageBatchCommand)({ QueueUrl, Entries }), options),
    );
  }

  private forgetOld(): void {
    const now = this.clock.monotonic();
    for (const [id, at] of this.notices) if (now - at > REMEMBER_MS) this.notices.delete(id);
  }
}

/** Returns the id of the instance that an event announces the interruption of; undefined for other messages. */
export function interruptedIn(body: string): string | undefined {
  let event: JsonValue;
  try {
    event = JSON.parse(body) as JsonValue;
  } catch {
    return undefined;
  }
  if (!isJsonObject(event) || stringAt(event, 'detail-type') !== INTERRUPTION) return undefined;
  return stringAt(objectAt(event, 'detail') ?? {}, 'instance-id');
}
