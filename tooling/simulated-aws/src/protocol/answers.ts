/** Answers of services in their protocols. */

import type { Answer } from '@nodepool/simulated-cloud';
import type { AwsError } from './aws-error.js';
import { writeJson } from './json.js';
import type { AwsRequest } from './request.js';
import { writeRest } from './rest.js';
import type { Operation } from './service-model.js';
import type { Structure } from './values.js';
import { element, escapeXml, XML_HEADER, XmlWriter } from './xml.js';

const XML_TYPE = 'text/xml;charset=UTF-8';

/** Names of the root elements of S3's answers. */
const ROOTS: Readonly<Record<string, string>> = {
  ListBuckets: 'ListAllMyBucketsResult',
  ListObjects: 'ListBucketResult',
  ListObjectsV2: 'ListBucketResult',
  CreateMultipartUpload: 'InitiateMultipartUploadResult',
  DeleteObjects: 'DeleteResult',
  GetObjectTagging: 'Tagging',
};

/** Codes of SQS in its former protocol. */
const FORMER_CODES: Readonly<Record<string, string>> = {
  QueueDoesNotExist: 'AWS.SimpleQueueService.NonExistentQueue',
};

/** Returns the answer for an output. Throws if it does not fit the definitions. */
export function answerOf(request: AwsRequest, operation: Operation, output: Structure, requestId: string): Answer {
  const { model } = request;
  const { protocol, xmlNamespace = '', jsonVersion = '1.0' } = model.metadata;
  const name = operation.name;
  const headers = { 'x-amzn-RequestId': requestId };
  switch (protocol) {
    case 'ec2': {
      const members = new XmlWriter(model).members(model.shape(operation.output), output);
      const content =
        element('requestId', requestId) + (operation.output === undefined ? element('return', 'true') : members);
      const body = XML_HEADER + element(`${name}Response`, content, ` xmlns="${xmlNamespace}/"`);
      return { status: 200, body, type: XML_TYPE, headers };
    }
    case 'query': {
      const members = new XmlWriter(model).members(model.shape(operation.output), output);
      const wrapper = operation.output?.resultWrapper ?? `${name}Result`;
      const result = operation.output === undefined ? '' : element(wrapper, members);
      const metadata = element('ResponseMetadata', element('RequestId', requestId));
      const body = element(`${name}Response`, result + metadata, ` xmlns="${xmlNamespace}"`);
      return { status: 200, body: XML_HEADER + body, type: XML_TYPE, headers };
    }
    case 'json': {
      const type = `application/x-amz-json-${jsonVersion}`;
      const json = operation.output === undefined ? undefined : writeJson(model, operation.output, output);
      return { status: 200, body: json === undefined ? '{}' : JSON.stringify(json), type, headers };
    }
    default: {
      if (name === 'GetBucketLocation') return locationAnswer(output, requestId);
      const { body, headers: own, ...answer } = writeRest(model, operation, output, ROOTS[name] ?? `${name}Result`);
      const status = name === 'DeleteObject' || name === 'AbortMultipartUpload' ? 204 : answer.status;
      const isPartial = 'Content-Range' in own;
      return {
        ...answer,
        status: isPartial ? 206 : status,
        body: body.length === 0 ? undefined : body,
        headers: { ...headers, 'x-amz-request-id': requestId, ...own },
      };
    }
  }
}

/** The only answer of S3 whose root element is the value. */
function locationAnswer({ LocationConstraint: region }: Structure, requestId: string): Answer {
  const content = typeof region === 'string' ? escapeXml(region) : '';
  const body = XML_HEADER + element('LocationConstraint', content, ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"');
  return { status: 200, body, type: 'application/xml', headers: { 'x-amz-request-id': requestId } };
}

/** Returns the answer for an error. */
export function errorAnswer(request: AwsRequest, error: AwsError, requestId: string): Answer {
  const { model, service, rest } = request;
  const { code, message, status, fields } = error;
  const headers = { 'x-amzn-RequestId': requestId };
  const more = Object.entries(fields).map(([name, value]) => element(name, escapeXml(value)));
  switch (model.metadata.protocol) {
    case 'ec2': {
      const inner = element('Error', element('Code', code) + element('Message', escapeXml(message)));
      const body = element('Response', element('Errors', inner) + element('RequestID', requestId));
      return { status, body: XML_HEADER + body, type: XML_TYPE, headers };
    }
    case 'query': {
      const shownCode = service === 'sqs' ? (FORMER_CODES[code] ?? code) : code;
      const type = element('Type', status < 500 ? 'Sender' : 'Receiver');
      const inner = element('Error', type + element('Code', shownCode) + element('Message', escapeXml(message)));
      const attributes = ` xmlns="${model.metadata.xmlNamespace ?? ''}"`;
      const body = element('ErrorResponse', inner + element('RequestId', requestId), attributes);
      return { status, body: XML_HEADER + body, type: XML_TYPE, headers };
    }
    case 'rest-xml': {
      if (rest.method === 'HEAD') return { status, headers: { ...headers, 'x-amz-request-id': requestId } };
      const inner = element('Code', code) + element('Message', escapeXml(message)) + more.join('');
      const body = XML_HEADER + element('Error', inner + element('RequestId', requestId));
      return { status, body, type: 'application/xml', headers: { ...headers, 'x-amz-request-id': requestId } };
    }
    case 'rest-json': {
      const body = JSON.stringify({ Message: message, ...fields });
      return { status, body, type: 'application/json', headers: { ...headers, 'x-amzn-ErrorType': code } };
    }
    case 'json': {
      const type = `application/x-amz-json-${model.metadata.jsonVersion ?? '1.0'}`;
      const plain = code.replace('AWS.SimpleQueueService.', '');
      const former = FORMER_CODES[code] ?? code;
      const compatible =
        service === 'sqs' ? { 'x-amzn-query-error': `${former};${status < 500 ? 'Sender' : 'Receiver'}` } : {};
      const shape = service === 'sqs' ? `com.amazonaws.sqs#${plain}` : plain;
      const body = JSON.stringify({ __type: shape, message });
      return { status, body, type, headers: { ...headers, ...compatible } };
    }
  }
}
