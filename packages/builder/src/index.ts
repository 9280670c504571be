/** The builder as a library, for the program, tests and simulations. */
export type { BuilderActivity, BuildActivity, CleanupActivity, UploadActivity } from './activity.js';
export type { BootTest, BootTester } from './boot-test/boot-tester.js';
export { QemuBootTester } from './boot-test/qemu-boot-tester.js';
export { Builder } from './builder.js';
export * from './builder-metrics.js';
export type { BuilderOptions } from './context.js';
export { DibProcesses, type BuildLogSettings } from './dib-process.js';
export { BuildFailedError, type BuildFailure, type DiskImageCreator, type DiskImageJob } from './disk-image-creator.js';
export type { Checksums, DiskImageFile, DiskImageFiles } from './disk-image-files.js';
export { ImagesDir } from './images-dir.js';
export { FetchedImages } from './source/fetched-images.js';
export type { ImageSources, SourceJob, SourceLeftover } from './source/image-sources.js';
export { runPostUploadHook, type HookCall, type PostUploadHook } from './post-upload-hook.js';
