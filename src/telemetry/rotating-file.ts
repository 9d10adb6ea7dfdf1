import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'

const OWNER_ONLY = 0o600
const CHECK_MS = 1000 // between looks at whether the file is still the one that is open
const NEWLINE = 0x0a

/** Where lines are appended, and when a new file is begun. */
export interface RotationOptions {
  readonly file: string
  readonly maxBytes: number // of one file; a batch of lines that is larger has a file of its own
  readonly files: number // that are kept, the current one too
}

/**
 * A file of lines for one writer. When it is full it becomes `<file>.1`, that one `<file>.2`, and so on; the oldest is
 * removed. If another program renames or removes the file, a new one is begun.
 */
export class RotatingFile {
  readonly #options: RotationOptions
  #handle: FileHandle | undefined
  #inode: number | undefined
  #size = 0
  #checkedAt = 0
  #batch: Buffer = Buffer.alloc(0)
  #written = 0 // bytes of the batch

  private constructor(options: RotationOptions) {
    this.#options = options
  }

  /** Opens the file or creates it, readable by its owner only; rejects if that is not possible. */
  static async open(options: RotationOptions): Promise<RotatingFile> {
    const file = new RotatingFile(options)
    await file.#open()
    if (await file.#isTorn()) file.#batch = Buffer.from('\n') // a former process was killed while it wrote a line
    return file
  }

  /**
   * Appends lines. If that fails, the rest is written first by the next call, which may have nothing to add: a line is
   * written whole, and once.
   */
  async write(lines: Buffer): Promise<void> {
    const rest = this.#batch.subarray(this.#written)
    if (this.#written === 0) this.#batch = rest.length === 0 ? lines : Buffer.concat([rest, lines])
    else if (lines.length > 0) this.#batch = Buffer.concat([this.#batch, lines])
    if (this.#batch.length === this.#written) return
    await this.#prepare()
    while (this.#written < this.#batch.length) await this.#writeSome()
    this.#batch = Buffer.alloc(0)
    this.#written = 0
  }

  async close(): Promise<void> {
    await this.#handle?.close()
    this.#handle = undefined
  }

  async #writeSome(): Promise<void> {
    if (!this.#handle) await this.#open()
    try {
      const written = await this.#handle?.write(this.#batch, this.#written)
      this.#written += written?.bytesWritten ?? 0
      this.#size += written?.bytesWritten ?? 0
    } catch (error) {
      await this.close().catch(() => {}) // a handle may stay unusable after an error
      throw error
    }
  }

  async #open(): Promise<void> {
    const before = this.#inode
    const handle = await open(this.#options.file, 'a+', OWNER_ONLY)
    const { ino, size } = await handle.stat()
    this.#handle = handle
    this.#inode = ino
    this.#size = size
    // A line that was begun in another file is written anew.
    if (before !== undefined && before !== ino && this.#written > 0)
      this.#written = this.#batch.lastIndexOf(NEWLINE, this.#written - 1) + 1
  }

  /** Begins a new file if this one is full, or if another program has taken it away. */
  async #prepare(): Promise<void> {
    if (Date.now() - this.#checkedAt >= CHECK_MS || Date.now() < this.#checkedAt) {
      const found = await stat(this.#options.file).catch(() => undefined)
      if (found?.ino !== this.#inode) await this.close()
      this.#checkedAt = Date.now()
    }
    if (!this.#handle) await this.#open()
    const isFull = this.#size > 0 && this.#size + this.#batch.length > this.#options.maxBytes
    if (isFull && this.#written === 0) await this.#rotate()
  }

  async #rotate(): Promise<void> {
    const { file, files } = this.#options
    await this.close()
    if (files === 1) await rm(file)
    for (let number = files - 1; number > 0; number--) {
      const newer = number === 1 ? file : `${file}.${number - 1}`
      await rename(newer, `${file}.${number}`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
    }
    await this.#open()
  }

  /** Whether the file ends in the middle of a line. */
  async #isTorn(): Promise<boolean> {
    if (this.#size === 0) return false
    const last = await this.#handle?.read(Buffer.alloc(1), 0, 1, this.#size - 1)
    return last?.bytesRead === 1 && last.buffer[0] !== NEWLINE
  }
}
