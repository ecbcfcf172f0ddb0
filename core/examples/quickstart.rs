//! Four ways to ask for a slot, without an async runtime.
use bandgate_core::{Engine, Request, Settings, Submitted, types::settings::PoolSettings};
use core::{pin::pin, task::Context, task::Poll, task::Waker, time::Duration};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    // One pool of 8 slots with two bands; the higher number is the more urgent.
    let pools = vec![PoolSettings::new("default", 8).with_bands(&[20, 10])];
    let engine = Engine::start(&Settings { pools, ..Settings::default() })?;
    let pool = engine.pool("default")?;
    // A flow is a group, a tenant in it and one of its keys. Look bands and flows up once and keep them.
    let (band, flow) = (pool.band(20)?, pool.flow("chatbot", "acme", "key-1")?);
    let request = Request::new(band).flow(flow).cost(128).timeout(Duration::from_secs(5));

    let permit = pool.try_admit(&request)?; // now, or the reason why not
    drop(permit); // the request is done; its slot goes to whom the policy names
    let permit = pool.admit_blocking(request, None)?; // waits on this thread, here at most 5 s
    drop(permit);
    let permit = block_on(pool.admit(request))?; // a future; dropping it abandons the request
    drop(permit);
    let queue = engine.completion_queue(1024)?; // for event loops: `submit` never waits
    match pool.submit(&request, &queue, 7)? {
        Submitted::Granted(permit) => permit.release(), // no completion follows
        Submitted::Queued(_ticket) => {
            queue.wait(None); // or watch `queue.fileno()`; each outcome carries its tag, here 7
            queue.drain(|done| drop(done.outcome));
        }
    }
    Ok(())
}

/// The smallest executor: it polls without sleeping. In a server this is your runtime's `.await`.
fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
