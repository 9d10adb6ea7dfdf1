import { Component, type ComponentChildren, type ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useShortcuts } from './keys.ts'
import { KeysHelp } from './keys-help.tsx'
import { Navigation } from './navigation.tsx'
import { type ConsolePage, PAGES } from './pages.ts'
import { Button } from './parts/button.tsx'
import { Empty } from './parts/empty.tsx'
import { SkeletonRows } from './parts/page-frame.tsx'
import { Toasts } from './parts/toast.tsx'
import { hrefTo, navigate, type PageProps, route } from './router.ts'
import { session } from './session.ts'
import { SignIn } from './sign-in.tsx'

/** The frame around all pages: navigation, the page of the address, messages, the list of keys. */
export const App = ({ retry }: { readonly retry: () => void }) => {
  const [isHelpOpen, setHelpOpen] = useState(false)
  useShortcuts('Everywhere', [
    { keys: '?', label: 'List the keys', run: () => setHelpOpen(true) },
    ...PAGES.map(({ id, title, key }) => ({
      keys: `g ${key}`,
      label: `Go to ${title}`,
      run: () => navigate(hrefTo(id)),
    })),
  ])
  const role = session.value?.role
  return (
    <>
      {role === 'none' ? (
        <SignIn />
      ) : (
        <div class="frame">
          <a class="skip-link" href={location.hash} onClick={skipToPage}>
            Skip to the page
          </a>
          <Navigation onHelp={() => setHelpOpen(true)} />
          <main id="page" tabIndex={-1}>
            {role === undefined ? <Waiting retry={retry} /> : <CurrentPage />}
          </main>
        </div>
      )}
      {isHelpOpen && <KeysHelp onClose={() => setHelpOpen(false)} />}
      <Toasts />
    </>
  )
}

const skipToPage = (event: Event): void => {
  event.preventDefault()
  document.getElementById('page')?.focus()
}

const SLOW_MS = 3000

/** Until the gateway has said who the user is. */
const Waiting = ({ retry }: { readonly retry: () => void }) => {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW_MS)
    return () => clearTimeout(timer)
  }, [])
  if (!isSlow) return <SkeletonRows />
  return (
    <Empty
      icon="warning"
      title="The gateway does not answer"
      text="Check that it is running."
      command="dragoman status"
    >
      <Button icon="restart" onClick={retry}>
        Try again
      </Button>
    </Empty>
  )
}

const CurrentPage = () => {
  const { page: id, path, query } = route.value
  const page = PAGES.find(each => each.id === id)
  return page ? (
    <FailureFrame key={id}>
      <LazyPage page={page} path={path} query={query} />
    </FailureFrame>
  ) : null
}

/** Loads the code of a page when it is first shown. */
const LazyPage = ({ page, ...props }: PageProps & { readonly page: ConsolePage }) => {
  const [loaded, setLoaded] = useState<{ readonly Content?: ComponentType<PageProps>; readonly failed?: true }>({})
  useEffect(() => {
    let isShown = true
    page.load().then(
      Content => isShown && setLoaded({ Content }),
      () => isShown && setLoaded({ failed: true }),
    )
    return () => {
      isShown = false
    }
  }, [page])
  const { Content, failed } = loaded
  if (Content) return <Content {...props} />
  if (failed) return <Reload title="This page could not be loaded" text="The gateway was updated, or it has stopped." />
  return <SkeletonRows />
}

const Reload = ({ title, text }: { readonly title: string; readonly text: string }) => (
  <Empty icon="warning" title={title} text={text}>
    <Button icon="restart" onClick={() => location.reload()}>
      Reload
    </Button>
  </Empty>
)

/** A page that fails leaves the navigation usable. */
class FailureFrame extends Component<{ readonly children: ComponentChildren }, { readonly failure?: Error }> {
  override componentDidCatch(failure: Error): void {
    console.error(failure)
    this.setState({ failure })
  }

  override render() {
    const { failure } = this.state
    return failure ? <Reload title="This page has failed" text={failure.message} /> : this.props.children
  }
}
