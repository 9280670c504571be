/** Paths of the records of uploads, read without the code of the store. */

export interface UploadParts {
  readonly image: string;
  readonly build: string;
  readonly provider: string;
}

const UPLOAD = /^\/nodepool\/images\/([^/]+)\/builds\/([^/]+)\/providers\/([^/]+)\/images\/[0-9]{10}$/;

/** Returns undefined if the path is not that of an upload. */
export function partsOfUpload(path: string): UploadParts | undefined {
  const [, image, build, provider] = UPLOAD.exec(path) ?? [];
  return image === undefined || build === undefined || provider === undefined ? undefined : { image, build, provider };
}
