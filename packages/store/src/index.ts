export type { Source } from './codec/codec.js';
export { nodeCodec } from './codec/node.js';
export { requestCodec } from './codec/request.js';
export { decodeComponent } from './components/component-codec.js';
export { newestForecast } from './components/forecasts.js';
export type { ComponentHandle } from './components/component-handle.js';
export {
  LAUNCHER_RETURN_MS,
  poolKey,
  POOL_RETURN_MS,
  type ComponentEntry,
  type ComponentStore,
  type DepartedPool,
} from './components/component-store.js';
export {
  type ComponentData,
  type ConfigurationFacts,
  type DemandForecast,
  type MachineOutage,
  type PoolComponentData,
  type PoolTrouble,
  type WebEndpoint,
  describeOutage,
  describePool,
  isOutOfService,
  isPoolAt,
  SERVES_REQUESTS,
} from './components/component.js';
export { MAX_OUTAGES, type PoolOutage, poolOutages } from './components/pool-outages.js';
export { type ConnectOptions, ZooKeeperChrootError, connectToZooKeeper } from './connection/connect.js';
export type { CorruptRecord } from './errors.js';
export { CorruptRecordError, LostOwnershipError, RequestGoneError, TransactionTooLargeError } from './errors.js';
export { exportImageData, importImageData, parseImageData } from './images/image-data.js';
export type {
  BuildHandle,
  BuildingLock,
  LockedUploadHandle,
  UploadHandle,
  UploadingLock,
} from './images/image-handle.js';
export type { BuildRef, UploadPlace, UploadRef } from './images/image-refs.js';
export {
  type ChoicePolicy,
  type ChoosingRequest,
  type ImageChoice,
  type ImageStanding,
  currentUpload,
  isBarredUpload,
  pathOf,
  standingOf,
  standingsOf,
} from './images/image-standing.js';
export type { ImageStore } from './images/image-store.js';
export { checkInstallationId } from './installation/installation-store.js';
export type { SuspensionStore } from './installation/suspension-store.js';
export type { Suspension } from './installation/suspension.js';
export { ageColumn, formatAge } from './lists/age.js';
export { cellText, characterWidth, displayWidth } from './lists/cell-text.js';
export { dibImageId, dibImageList, imageList, imageStatus, unresolvedFailure } from './lists/image-lists.js';
export { labelList } from './lists/label-list.js';
export { nodeList, nodeListOf } from './lists/node-list.js';
export type { ColumnChoice, ListColumn, RecordList } from './lists/record-list.js';
export { UnknownFieldError, createRecordList, toJsonObjects } from './lists/record-list.js';
export { requestList } from './lists/request-list.js';
export { toTable } from './lists/table.js';
export {
  type BackingSlots,
  backingSlots,
  damagedBackingNodes,
  type DamagedBackingNode,
  slotText,
} from './nodes/backing-slots.js';
export { NodeEntry } from './nodes/node-entry.js';
export type { NodeHandle } from './nodes/node-handle.js';
export { isOffered, strandedNodes } from './nodes/stranded-nodes.js';
export {
  ELECTIONS_ROOT,
  NODEPOOL_ROOT,
  REQUESTS_ROOT,
  buildPath,
  componentsPath,
  encodedName,
  newRequestPath,
  nodePath,
  requestLockPath,
  requestPath,
  uploadPath,
} from './paths.js';
export { RequestEntry } from './requests/request-entry.js';
export type { RequestHandle } from './requests/request-handle.js';
export type { AcceptedRequest, RequestStore } from './requests/request-store.js';
export type { DemandDay, DemandStore } from './demand/demand-store.js';
export { type Unrecorded, missingTags, unrecordedResources } from './resources/unrecorded-resources.js';
export { type Store, openStore } from './store.js';
export type { Change } from './tables/change.js';
export { EmptyRecordRounds } from './tables/empty-record-rounds.js';
export { Index } from './tables/indexes.js';
export { settleEvents } from './tables/settle-events.js';
