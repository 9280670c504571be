/** The HTTP API of the example cloud, for a cloud in a separate process. */

import fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { Readable } from 'node:stream';
import type { ExampleCloud } from './cloud/cloud.js';
import { CLOUD_ERROR_STATUS, CloudError, type ImageSpec, type InstanceSpec } from './cloud/types.js';

export interface CloudServer {
  /** URL, e.g. `http://127.0.0.1:8480`. */
  readonly endpoint: string;
  /** Closes all connections, then resolves. The cloud itself continues to run. */
  stop(): Promise<void>;
}

/** Serves `cloud` over HTTP; port 0 selects a free port. Rejects if the server cannot listen there. */
export async function serveCloud(
  cloud: ExampleCloud,
  { port, address }: { readonly port: number; readonly address: string },
): Promise<CloudServer> {
  // Bodies are not coerced: the defaults would convert nulls to texts and silently drop unknown keys.
  const ajv = { customOptions: { coerceTypes: false, removeAdditional: false } } as const;
  const app = fastify({ forceCloseConnections: true, ajv });
  app.setErrorHandler((error, _request, reply) => {
    refuse(reply, asCloudError(error));
  });
  app.setNotFoundHandler((request, reply) => {
    refuse(reply, new CloudError('not-found', `there is no ${request.method} ${request.url}`));
  });
  // Image data are passed on as they arrive, without being read here.
  app.addContentTypeParser('application/octet-stream', (_request, payload, done) => {
    done(null, payload);
  });
  addInstanceRoutes(app, cloud);
  addImageRoutes(app, cloud);
  return { endpoint: await app.listen({ port, host: address }), stop: () => app.close() };
}

const nullable = (type: string): object => ({ anyOf: [{ type }, { type: 'null' }] });
const texts = { type: 'object', additionalProperties: { type: 'string' } };
const idParams = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };
const pageQuery = {
  type: 'object',
  properties: { marker: { type: 'string' }, limit: { type: 'string', pattern: '^[1-9][0-9]*$' } },
};

interface IdRoute {
  Params: { id: string };
}

interface PageRoute {
  Querystring: { marker?: string; limit?: string };
}

function addInstanceRoutes(app: FastifyInstance, cloud: ExampleCloud): void {
  const body = {
    type: 'object',
    required: ['name', 'zone', 'size', 'cores', 'ram', 'image', 'tags'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1 },
      zone: nullable('string'),
      size: nullable('string'),
      cores: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] },
      ram: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] },
      image: { type: 'string', minLength: 1 },
      tags: texts,
    },
  };
  app.get('/v1/cloud', async () => cloud.describe());
  app.post<{ Body: InstanceSpec }>('/v1/instances', { schema: { body } }, async (request, reply) => {
    reply.code(201);
    return cloud.createInstance(request.body);
  });
  app.get<PageRoute>('/v1/instances', { schema: { querystring: pageQuery } }, async ({ query }) =>
    cloud.listInstances(query.marker ?? null, limitOf(query.limit)),
  );
  app.delete<IdRoute>('/v1/instances/:id', { schema: { params: idParams } }, async ({ params }) =>
    cloud.deleteInstance(params.id),
  );
  app.get<IdRoute>('/v1/instances/:id/console', { schema: { params: idParams } }, async ({ params }) => ({
    output: await cloud.consoleOf(params.id),
  }));
}

function addImageRoutes(app: FastifyInstance, cloud: ExampleCloud): void {
  const body = {
    type: 'object',
    required: ['name', 'format', 'size', 'md5', 'sha256', 'tags', 'properties'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1 },
      format: { type: 'string', minLength: 1 },
      size: { type: 'integer', minimum: 0 },
      md5: nullable('string'),
      sha256: nullable('string'),
      tags: texts,
      properties: texts,
    },
  };
  app.post<{ Body: ImageSpec }>('/v1/images', { schema: { body } }, async (request, reply) => {
    reply.code(201);
    return cloud.createImage(request.body);
  });
  app.put<IdRoute & { Body: Readable }>('/v1/images/:id/data', { schema: { params: idParams } }, async (request) =>
    cloud.putImageData(request.params.id, request.body),
  );
  app.get<PageRoute>('/v1/images', { schema: { querystring: pageQuery } }, async ({ query }) =>
    cloud.listImages(query.marker ?? null, limitOf(query.limit)),
  );
  app.delete<IdRoute>('/v1/images/:id', { schema: { params: idParams } }, async ({ params }) => {
    await cloud.deleteImage(params.id);
    return {};
  });
}

function limitOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function refuse(reply: FastifyReply, error: CloudError): void {
  if (error.code === 'answer-lost') {
    reply.hijack();
    reply.raw.destroy();
    return;
  }
  const { code, message, retryAfterSeconds } = error;
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  reply.code(CLOUD_ERROR_STATUS[code]).send({ error: { code, message, retryAfterSeconds } });
}

/** Converts an error. Errors of the HTTP layer itself (bad JSON, schema violations, huge bodies) are the caller's. */
function asCloudError(error: unknown): CloudError {
  if (error instanceof CloudError) return error;
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  const message = error instanceof Error ? error.message : String(error);
  const ours = typeof status !== 'number' || status >= 500;
  return new CloudError(ours ? 'internal' : 'invalid', message);
}
