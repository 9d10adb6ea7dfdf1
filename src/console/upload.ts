import { ApiError, csrf, errorOf, gatewayUrl, hasExpired } from './api.ts'

export interface UploadOptions {
  readonly onProgress: (sent: number) => void // bytes
  readonly signal: AbortSignal
}

const GONE = 'The connection broke while the file was sent. Check that the gateway is running, and try again'

/** Sends a file to the admin API. Not with `fetch`, which does not tell how much has been sent. */
export const uploadFile = <T>(path: string, file: Blob, { onProgress, signal }: UploadOptions): Promise<T> =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', gatewayUrl(path))
    request.setRequestHeader('accept', 'application/json')
    request.setRequestHeader('content-type', 'application/octet-stream')
    if (csrf.value !== undefined) request.setRequestHeader('x-dragoman-csrf', csrf.value)
    request.upload.onprogress = ({ loaded }) => onProgress(loaded)
    request.onload = () => {
      if (request.status === 401) hasExpired.value = true
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText) as T)
      else reject(errorOf(request.status, request.responseText))
    }
    request.onerror = () => reject(new ApiError(0, GONE))
    request.onabort = () => reject(new DOMException('The upload was cancelled', 'AbortError'))
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(file)
  })
