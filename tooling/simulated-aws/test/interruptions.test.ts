/** Spot interruptions, their events, and the queue that receives them. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DescribeSpotInstanceRequestsCommand } from '@aws-sdk/client-ec2';
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  type Message,
} from '@aws-sdk/client-sqs';
import { codeOf, Fixture } from './support/fixture.js';

const SPOT = { InstanceMarketOptions: { MarketType: 'spot' } } as const;
const WARNING = 'EC2 Spot Instance Interruption Warning';
const REBALANCE = 'EC2 Instance Rebalance Recommendation';
let aws: Fixture;

beforeEach(async () => {
  aws = await Fixture.start({ queueEvents: [WARNING, REBALANCE] });
});

afterEach(() => aws.close());

async function receive(more: object = {}): Promise<readonly Message[]> {
  const QueueUrl = aws.cloud.queueUrl;
  const input = { QueueUrl, MaxNumberOfMessages: 10, ...more };
  return (await aws.sqs.send(new ReceiveMessageCommand(input))).Messages ?? [];
}

describe('an interruption', () => {
  it('is announced, and comes two minutes later', async () => {
    const id = await aws.runOne(SPOT);
    aws.cloud.interruptSpot(id, { rebalance: true });
    const events = (await receive()).map(({ Body = '' }) => JSON.parse(Body) as unknown);
    expect(events).toMatchObject([
      { 'detail-type': REBALANCE, detail: { 'instance-id': id } },
      {
        ...{ 'detail-type': WARNING, source: 'aws.ec2', region: 'us-east-1', version: '0' },
        detail: { 'instance-id': id, 'instance-action': 'terminate' },
        resources: [`arn:aws:ec2:us-east-1:123456789012:instance/${id}`],
      },
    ]);
    await aws.clock.advance(119_999);
    expect((await aws.list()).map(({ State }) => State?.Name)).toEqual(['running']);
    await aws.clock.advance(1);
    const [ended] = await aws.list();
    expect([ended?.State?.Name, ended?.StateReason?.Code]).toEqual(['terminated', 'Server.SpotInstanceTermination']);
    const { SpotInstanceRequests } = await aws.ec2.send(new DescribeSpotInstanceRequestsCommand({}));
    expect(SpotInstanceRequests).toMatchObject([
      { State: 'closed', Status: { Code: 'instance-terminated-no-capacity' } },
    ]);
  });

  it('happens to running spot instances only', async () => {
    const id = await aws.runOne();
    expect(() => aws.cloud.interruptSpot(id)).toThrow('not a running spot instance');
  });

  it('may be any other end', async () => {
    const id = await aws.runOne();
    aws.cloud.endInstance(id, 'terminated', 'Server.ScheduledStop');
    expect((await aws.list()).map(({ StateReason }) => StateReason?.Code)).toEqual(['Server.ScheduledStop']);
    const other = await aws.runOne();
    aws.cloud.endInstance(other, 'stopped', 'Client.InstanceInitiatedShutdown');
    expect(aws.cloud.inspect.instances()).toMatchObject([{ state: 'terminated' }, { state: 'stopped' }]);
  });
});

describe('the queue', () => {
  it('hides received messages for a time, until they are deleted', async () => {
    aws.cloud.sendMessage('a');
    const [first] = await receive({ VisibilityTimeout: 10, MessageSystemAttributeNames: ['All'] });
    expect(first).toMatchObject({ Body: 'a', Attributes: { ApproximateReceiveCount: '1' } });
    expect(await receive()).toEqual([]);
    await aws.clock.advance(10_000);
    const [second] = await receive({ MessageSystemAttributeNames: ['ApproximateReceiveCount'] });
    expect(second).toMatchObject({ MessageId: first?.MessageId, Attributes: { ApproximateReceiveCount: '2' } });
    const QueueUrl = aws.cloud.queueUrl;
    // A receipt of an earlier reception deletes nothing.
    await aws.sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: first?.ReceiptHandle }));
    expect(aws.cloud.inspect.messages()).toBe(1);
    const { ReceiptHandle } = second ?? {};
    await aws.sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 0 }));
    const [third] = await receive();
    await aws.sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: third?.ReceiptHandle }));
    expect(aws.cloud.inspect.messages()).toBe(0);
  });

  it('lets a call wait for a message', async () => {
    const id = await aws.runOne(SPOT);
    const waiting = receive({ WaitTimeSeconds: 20 });
    await aws.clock.runUntil(() => aws.cloud.calls.count('sqs.ReceiveMessage') === 1);
    aws.cloud.interruptSpot(id);
    expect(await waiting).toHaveLength(1);
  });

  it('deletes messages in batches', async () => {
    aws.cloud.sendMessage('a');
    const [message] = await receive();
    const QueueUrl = aws.cloud.queueUrl;
    const remove = (Entries: { Id: string; ReceiptHandle: string | undefined }[]): DeleteMessageBatchCommand =>
      new DeleteMessageBatchCommand({ QueueUrl, Entries });
    const { Successful, Failed } = await aws.sqs.send(
      remove([
        { Id: '1', ReceiptHandle: message?.ReceiptHandle },
        { Id: '2', ReceiptHandle: 'wrong' },
      ]),
    );
    expect([Successful, Failed]).toMatchObject([[{ Id: '1' }], [{ Id: '2', Code: 'ReceiptHandleIsInvalid' }]]);
    const eleven = Array.from({ length: 11 }, (_, index) => ({ Id: String(index), ReceiptHandle: 'x' }));
    expect(await codeOf(aws.sqs.send(remove(eleven)))).toBe('TooManyEntriesInBatchRequest');
    expect(await codeOf(aws.sqs.send(remove([])))).toBe('EmptyBatchRequest');
  });

  it('has attributes, a name and neighbours', async () => {
    const { QueueUrl } = await aws.sqs.send(new CreateQueueCommand({ QueueName: 'other' }));
    await aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: 'hello', DelaySeconds: 5 }));
    const AttributeNames = ['ApproximateNumberOfMessagesNotVisible', 'VisibilityTimeout'] as const;
    const ask = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: [...AttributeNames] });
    expect((await aws.sqs.send(ask)).Attributes).toEqual({
      ...{ ApproximateNumberOfMessagesNotVisible: '1', VisibilityTimeout: '30' },
    });
    expect((await aws.sqs.send(new GetQueueUrlCommand({ QueueName: 'other' }))).QueueUrl).toBe(QueueUrl);
    const absent = new GetQueueUrlCommand({ QueueName: 'absent' });
    expect(await codeOf(aws.sqs.send(absent))).toBe('QueueDoesNotExist');
  });
});
