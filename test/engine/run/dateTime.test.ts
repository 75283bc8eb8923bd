/** The moment that a skill is told, in the zone of whoever runs it. */
import assert from 'node:assert/strict';
import { dateAndTime } from '../../../src/engine/run/prompt.ts';

describe('dateAndTime', () => {
  const before = process.env['TZ'];
  afterEach(() => {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  });
  const inZone = (zone: string, moment: string): string => {
    process.env['TZ'] = zone;
    return dateAndTime(new Date(moment));
  };

  it('shows the letters that people know, summer and winter', () => {
    assert.equal(inZone('America/New_York', '2026-11-20T09:08:07-05:00'), '2026-11-20 09:08:07 EST');
    assert.equal(inZone('America/New_York', '2026-07-01T00:00:00-04:00'), '2026-07-01 00:00:00 EDT');
    assert.equal(inZone('UTC', '2026-11-20T00:00:01Z'), '2026-11-20 00:00:01 UTC');
  });

  it('shows the offset of any other zone, and midnight as 00', () => {
    assert.equal(inZone('Asia/Kathmandu', '2026-11-19T18:15:00Z'), '2026-11-20 00:00:00 GMT+5:45');
    assert.equal(inZone('Europe/Berlin', '2026-10-25T02:30:00+01:00'), '2026-10-25 02:30:00 GMT+1');
    assert.equal(inZone('America/Sao_Paulo', '2026-11-20T12:00:00Z'), '2026-11-20 09:00:00 GMT-3');
  });

  it('says the same as Intl in every zone that it abbreviates', () => {
    for (const zone of [
      'America/Chicago',
      'America/Denver',
      'America/Los_Angeles',
      'America/Anchorage',
      'Pacific/Honolulu',
    ]) {
      for (const moment of ['2026-01-15T12:00:00Z', '2026-07-15T12:00:00Z']) {
        const written = inZone(zone, moment).split(' ').at(-1);
        const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'short' });
        const expected = format
          .formatToParts(new Date(moment))
          .find(({ type }) => type === 'timeZoneName')?.value;
        assert.equal(written, expected, `${zone} ${moment}`);
      }
    }
  });
});
