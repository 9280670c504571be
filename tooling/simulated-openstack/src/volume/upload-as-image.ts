/** The action that uploads a volume as an image. */

import type { JsonObject } from '@nodepool/core';
import type { Answer } from '@nodepool/simulated-cloud';
import { json, textOf } from '../http/request-context.js';
import { NO_IMAGE, type CloudImages } from '../image/images.js';
import type { VolumeRecord } from './volumes.js';

/** Name of the action. */
export const UPLOAD = 'os-volume_upload_image';
/** Size of the data of an uploaded volume, in bytes. */
const UPLOAD_BYTES = 65_536;

/** Creates an image that has the properties of the image from which the volume was created. */
export function uploadAsImage(volume: VolumeRecord, wanted: JsonObject, images: CloudImages): Answer {
  const name = textOf(wanted['image_name'], '');
  const diskFormat = textOf(wanted['disk_format'], 'raw');
  const properties = new Map(volume.imageProperties);
  const data = Buffer.alloc(UPLOAD_BYTES);
  const image = images.addActive({ ...NO_IMAGE, name, diskFormat, properties }, volume.project, data);
  return json(202, { [UPLOAD]: { id: volume.id, status: 'uploading', image_id: image.id, image_name: name } });
}
