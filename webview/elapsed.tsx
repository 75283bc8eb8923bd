/** Seconds that go by while something is waited for, shown from the second one on. */
import { useEffect, useState } from 'preact/hooks';
import { formatDuration } from './wording.ts';

export function Elapsed() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds(value => value + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return seconds < 2 ? null : <span class="figures">{formatDuration(seconds * 1_000)}</span>;
}
