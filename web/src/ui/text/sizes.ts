// Amounts of bytes, as short as a row wants them.

export function bytesText(bytes: number): string {
  if (bytes < 1024 * 1024) return `${Math.max(1, Math.round(bytes / 1024))} kB`
  const mega = bytes / 1024 / 1024
  return mega < 1024
    ? `${mega < 10 ? mega.toFixed(1) : Math.round(mega)} MB`
    : `${(mega / 1024).toFixed(1)} GB`
}
