/** Amazon's published definitions, and the readers and writers that follow them. */

import { describe, expect, it } from '@jest/globals';
import { decodeChunks } from '../src/protocol/checksums.js';
import { readQuery } from '../src/protocol/query-input.js';
import { ServiceModel } from '../src/protocol/service-model.js';
import { parseXml } from '../src/protocol/xml.js';
import { Fixture } from './support/fixture.js';

const ec2 = ServiceModel.of('ec2');

describe('the definitions', () => {
  it('contain only operations that the simulation has', async () => {
    const aws = await Fixture.start();
    const { operations } = aws.cloud;
    await aws.close();
    const services = ['ec2', 's3', 'ebs', 'service-quotas', 'sqs', 'sqs-query', 'sts'] as const;
    const lacking = services.flatMap((service) => {
      const known = operations[service === 'sqs-query' ? 'sqs' : service] ?? [];
      const defined = ServiceModel.of(service).operations.map(({ name }) => name);
      return defined.filter((name) => !known.includes(name));
    });
    expect(lacking).toEqual([]);
  });
});

describe('a query', () => {
  const read = (text: string): unknown =>
    readQuery(ec2, ec2.operation('RunInstances')?.input, new URLSearchParams(text));

  it('has structures, lists in the order of their numbers, and typed values', () => {
    const counts = 'Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=2';
    const tags =
      'TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.2.Key=b&TagSpecification.1.Tag.1.Key=a';
    const nic = 'NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.AssociatePublicIpAddress=true';
    expect(read(`${counts}&${tags}&${nic}&SecurityGroupId.10=j&SecurityGroupId.9=i`)).toEqual({
      ...{ MinCount: 1, MaxCount: 2, SecurityGroupIds: ['i', 'j'] },
      TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'a' }, { Key: 'b' }] }],
      NetworkInterfaces: [{ DeviceIndex: 0, AssociatePublicIpAddress: true }],
    });
  });

  it.each([
    ['MinCount=1', 'The request must contain the parameter MaxCount'],
    ['MinCount=1&MaxCount=1&Tag.1.Key=a', 'The parameter Tag is not recognized'],
    ['MinCount=1&MaxCount=1&MetadataOptions.HttpTokens=maybe', 'Expected one of: optional, required'],
    ['MinCount=one&MaxCount=1', 'Value (one) for parameter MinCount is invalid'],
  ])('%s is refused', (text, message) => {
    expect(() => read(text)).toThrow(message);
  });
});

describe('XML', () => {
  it('is parsed with entities, and refused if it is malformed', () => {
    expect(parseXml('<?xml version="1.0"?>\n<a x="1"><b>1 &lt; 2 &#38; &#x33;</b><c/></a>')).toEqual({
      ...{ name: 'a', text: '' },
      children: [
        { name: 'b', text: '1 < 2 & 3', children: [] },
        { name: 'c', text: '', children: [] },
      ],
    });
    for (const wrong of ['', '<a>', '<a></b>', '<a/><b/>', 'text', '<a>1 < 2</a>'])
      expect(parseXml(wrong)).toBeUndefined();
  });
});

describe('a chunked body', () => {
  it('has its content, and trailers', () => {
    const encoded = Buffer.from('5;chunk-signature=00\r\nhello\r\n1\r\n!\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n');
    const { body, trailers } = decodeChunks(encoded);
    expect(body.toString()).toBe('hello!');
    expect(trailers).toEqual({ 'x-amz-checksum-crc32': 'AAAA' });
    expect(() => decodeChunks(Buffer.from('hello'))).toThrow('malformed');
  });
});
