/** Models, runtime services and driver API, shared by the drivers and programs of Nodepool. */
export * from './model/backing.js';
export * from './model/image.js';
export * from './model/image-review.js';
export * from './model/json.js';
export * from './model/node.js';
export * from './model/prices.js';
export * from './runtime/tracing.js';
export * from './model/request.js';
export * from './runtime/abort.js';
export * from './runtime/abort-callbacks.js';
export * from './runtime/back-off.js';
export * from './runtime/clock.js';
export * from './runtime/deadline.js';
export * from './runtime/error-text.js';
export * from './runtime/emitter.js';
export * from './runtime/latch.js';
export * from './runtime/logger.js';
export * from './runtime/metrics.js';
export * from './runtime/package-version.js';
export { systemRandom, type RandomSource } from './runtime/random.js';
export * from './runtime/printable.js';
export * from './runtime/shortened.js';
export * from './runtime/slots.js';
export * from './runtime/tasks.js';
export * from './runtime/turns.js';
export { TimerQueue } from './runtime/timer-queue.js';
export * from './runtime/work-queue.js';
export * from './driver/api.js';
export * from './driver/api-metrics.js';
export * from './driver/backing-nodes.js';
export * from './driver/cached-read.js';
export * from './driver/call.js';
export * from './driver/error-codes.js';
export * from './driver/errors.js';
export * from './driver/remedies.js';
export { certificateAdvice, isUntrusted, networkCauseOf, type NetworkFailure } from './driver/network-errors.js';
export * from './driver/retry.js';
export { retryAfterMsIn, serverTime } from './driver/retry-after.js';
export * from './driver/api-client.js';
export { type Lane, type LaneOptions } from './driver/api-lane.js';
export {
  NO_CREDENTIALS,
  nameOfCall,
  type ApiCredentials,
  type ApiOperation,
  type ApiRequest,
  type Attempt,
  type Attempted,
  type ErrorOf,
  type Refusal,
  type Transport,
} from './driver/api-request.js';
export * from './driver/error-table.js';
export * from './driver/fetch-answer.js';
export * from './driver/operation-poll.js';
export type { AnswerHead, AnswerHeaders } from './driver/http-exchange.js';
export { answerText, boundedAnswer, headerIn, HttpExchange, type AnswerLimits } from './driver/http-exchange.js';
export { withoutSecrets } from './driver/secrets.js';
export * from './driver/token-source.js';
export * from './driver/image-settings.js';
export * from './driver/image-tests.js';
export * from './driver/cloud-deletion.js';
export * from './driver/images.js';
export * from './driver/json-schema.js';
export * from './driver/node-supply.js';
export * from './driver/provider-config.js';
export * from './driver/provider-config-loader.js';
export * from './driver/quota.js';
export * from './driver/schema.js';
export * from './driver/section.js';
export * from './driver/simple-api.js';
export * from './driver/site.js';
export type { OpenCall } from './driver/open-calls.js';
export * from './driver/supervised-provider.js';
export * from './driver/state-machine-api.js';
export * from './driver/task-manager.js';
export * from './driver/task-queue.js';
export * from './driver/base-task-manager-provider.js';
export * from './driver/rate-limiter.js';
export { RequestTemplate, requestTemplatesAt, TemplateError } from './driver/request-template.js';
export { checkInstances, externalIdKey, IndexedListing } from './driver/state-machine/listing.js';
export * from './driver/state-machine/attempt-lookup.js';
export * from './driver/state-machine/driver.js';
export * from './driver/state-machine/pending-call.js';
export { StepRetries } from './driver/state-machine/step-retries.js';
export * from './driver/simple/driver.js';
