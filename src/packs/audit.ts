/** What a pack's files would do, as findings. */
export { sarifOf } from './audit/sarif.ts';
export { passes, type ScanReport } from './audit/scan.ts';
export { scanFolders } from './audit/scanFolder.ts';
