/** The lists that operators and monitoring see, made in one place for the command line and the web endpoints. */
export * from './age.js';
export * from './image-lists.js';
export * from './label-list.js';
export {
  chooseColumns,
  makeRecordList,
  toJsonObjects,
  UnknownFieldError,
  type ColumnChoice,
  type ListColumn,
  type RecordList,
} from './record-list.js';
export * from './node-list.js';
export * from './request-list.js';
export * from './table.js';
