export * from './component.js';
export { ageColumn, formatAge } from './lists/age.js';
export * from './lists/explanation.js';
export * from './lists/image-lists.js';
export * from './lists/image-report.js';
export * from './lists/label-list.js';
export {
  createRecordList,
  toJsonObjects,
  UnknownFieldError,
  type ColumnChoice,
  type ListColumn,
  type RecordList,
} from './lists/record-list.js';
export * from './lists/node-list.js';
export * from './lists/request-list.js';
export { cellText, characterWidth, displayWidth, printable } from './lists/cell-text.js';
export { toTable } from './lists/table.js';
export * from './api.js';
export * from './image-api.js';
export { exportImageData, importImageData, parseImageData, type ImageData } from './image-data.js';
export * from './connect.js';
export * from './errors.js';
export { Index } from './indexes.js';
export type { Codec, Decoded, Source } from './codec/codec.js';
export { decodeComponent } from './codec/component.js';
export * from './codec/request.js';
export * from './open-store.js';
export {
  ELECTIONS_ROOT,
  REQUESTS_ROOT,
  buildPath,
  componentsPath,
  newRequestPath,
  nodeLockPath,
  nodePath,
  requestLockPath,
  requestPath,
  uploadPath,
} from './paths.js';
export { strandedNodes } from './stranded-nodes.js';
export { settleEvents } from './settle-events.js';
export { missingTags, unrecordedResources, type Unrecorded } from './unrecorded-resources.js';
