//! How the engine is built: who owns which memory, which access pairs with which, and what was decided against what.
//!
//! This module holds no code. It stands beside the code so that its links break when the code moves.
//!
//! # The path
//!
//! ```text
//!  submit ──► ring ──► queue ──► select ──► admit ──► notify ──► … the host runs it … ──► release
//!    │                 flows     band       word                                            │
//!    │                 requests             caps                                            │
//!    │                 timers               gates                                           │
//!    └── fast path of a request without a flow: nobody who could run waits and the pool     │
//!        has room: one compare-and-swap on the pool's word, on the caller's thread ◄────────┘
//!                                        a release gives the slot to whom the policy names, never to a newcomer
//!
//!  keeper (or the host's poll, or a shard's thread):  scheduler ring ──► pool ──► turn(now, budget)
//!                                                     deadline due  ──► pool ──► the turn evicts who is too late
//! ```
//!
//! | step | where |
//! | --- | --- |
//! | 1. a call is checked: process, pool, cost | `engine/pool.rs`, for futures `engine/admit.rs` |
//! | 2. fast path: one compare-and-swap, no lock | `admit/word.rs`, called from `shard/execute.rs` |
//! | 3. else LOCK is tried; without it the request gets a slab entry and its command goes on the ring | `shard/execute.rs`, `slab.rs`, `ring/command.rs` |
//! | 4. a turn under LOCK: urgent list, ring, due deadlines, own command; if there is nothing but the own command, the quick turn | `shard/turn.rs`, `shard/hold.rs`, `shard/hold/commands.rs`; `shard/quick.rs` |
//! | 5. who must wait goes into its band | `queue/bands.rs`, `queue/lanes.rs` |
//! | 6. while a slot is free: which bands are open, which is next, who in it has room | `shard/hold/decide.rs` and `shard/rules.rs`, with `admit/gates/`, `select/band/`, `queue/bands.rs`, `admit/caps.rs` |
//! | 7. the outcome goes into the entry or the completion ring; unlock; wake | `shard/hold/decide.rs`, `ring/completion.rs`, `shard/turn.rs` |
//! | 8. the permit is dropped: step 2 backwards, or a turn | `engine/permit.rs`, `shard/execute.rs` |
//! | 9. work left over, deadlines | `shard.rs` (`poll`), `ring/scheduler.rs`, `engine/driver.rs`, `notify/` |
//!
//! The folders `ring`, `queue`, `select`, `admit` and `notify` are the stages of this picture, from left to right. A
//! stage imports no other stage; `shard` composes them and `engine` is the front door. The order of dependency is the
//! table `LAYERS` in `core/tests/tidy/checks.rs`, and is checked.
//!
//! # Who owns which memory
//!
//! "LOCK" is the lowest bit of a pool's word. It is only ever tried, never waited for: who fails to get it leaves a
//! command and goes. Whatever belongs to LOCK is plain memory, reached through the one cell that the holder opens.
//!
//! | memory | owner | others may |
//! | --- | --- | --- |
//! | pool word | nobody; while LOCK is set only its holder changes it | read; compare-and-swap from a value without LOCK |
//! | reserves, one a band | LOCK | read, between two looks at the word's epoch |
//! | command ring | its head: LOCK; a cell: its pusher from claim to stamp, then LOCK | push; compare tail with head |
//! | urgent list, its nodes | the list: whoever takes it whole under LOCK; a node's link: who made its bits non-zero | put bits, add to an owed count |
//! | entry, plain part (request, deadline, links, cost) | its maker until it is pushed, then LOCK, until a final state is stored | nothing |
//! | entry, state word | as its plain part; after a final state the holder of the ticket, who gives the index back | read, to poll an outcome |
//! | waker cell of an entry | the `atomic-waker` protocol, in `slab/waker.rs` | register (the waiting task), wake (after the unlock) |
//! | lanes, heaps, caps, credits, virtual times, counters | LOCK | nothing; live views are copied out by the holder |
//! | timer wheel of a pool | LOCK | read the published next deadline |
//! | free slab indices, cached | LOCK of the pool that cached them | nothing |
//! | free slab indices, shared | nobody: a tagged list | take and give in batches |
//! | completion ring | its tail: the thread that delivers; its head: the host's queue | read the other's end |
//! | flow rows (name, pool, caps) | written once at interning, before the index is given out | read |
//! | scheduler ring | pusher of the cell; one popper at a time | set the pool's flag by swap |
//!
//! Nothing is reclaimed while the engine lives: entries and rows are reused under generations, so a stale name is a
//! status code and never a dangling pointer.
//!
//! # Orderings
//!
//! `loom-tests` model-checks these protocols on the production types. A word that only one file touches (the ends of the
//! scheduler ring, places in a completion ring, units of the engine ceiling) has its table at the top of that file. A
//! weaker ordering than the one given is a fault, a stronger one costs time.
//!
//! | word | written by | read by | ordering | pairs with, and why |
//! | --- | --- | --- | --- | --- |
//! | pool word, taking LOCK | any caller | - | CAS Acquire | the last unlock and every fast release: the new holder sees all plain state and the slots given back |
//! | pool word, unlock | the holder | everyone | store Release, then `fence(SeqCst)` | a store suffices, since nobody else writes while LOCK is set; the fence stands between "I am out" and "did anybody leave something" |
//! | pool word, fast admit | any caller | - | load Acquire, CAS Acquire | load: the reserves read next are as new as the epoch seen; CAS: the release that made the slot free |
//! | pool word, fast release | any caller | - | load Relaxed, CAS Release | whoever takes the slot, or LOCK, next |
//! | reserve of a band | the holder | fast admit | Relaxed both | valid only if the CAS finds the same epoch, which the unlock published |
//! | ring tail | pushers | pushers, fast admit | CAS Relaxed, load Relaxed | publishes nothing; the stamp does |
//! | ring cell stamp | its pusher | the holder | Release, Acquire | the argument of the command. After a push: `fence(SeqCst)`, then one more try for LOCK; it meets the unlock's fence, so the pusher finds LOCK clear or the holder finds the stamp |
//! | ring head | the holder | pushers, fast admit | Release, Acquire | a pusher may reuse the cell; a fast admit that sees an empty ring also sees what the drained commands did |
//! | urgent list head | posters, the holder | the holder | CAS Release, swap Acquire | the node's link |
//! | node: asked bits | posters, the holder | both | CAS AcqRel, swap AcqRel | changed from both sides, so by read-modify-write on both: who finds zero links the node, and the link is read before the bits are taken |
//! | node: owed count | releasing threads, the holder | both | `fetch_add` AcqRel, swap AcqRel | as above; a load and a store would lose a release. The sum of what they used beyond their estimates stands beside it, Relaxed: added before the count, taken after it |
//! | marks RESIZE, GATE, DRAIN, SHUTDOWN, RECALL, MAIL | any thread, the holder | both | `fetch_or` AcqRel, swap AcqRel | the value beside a mark is stored before the mark is set; the last one wins |
//! | entry state | the holder | a polling host | Release, Acquire | what a poller reads of the outcome |
//! | next deadline of a pool | the holder | who sleeps for the shard | Relaxed both | written before the unlock's fence, read after the sleeper's; whoever made it nearer wakes the sleeper |
//! | `until` of a sleeper | the sleeper, who made a deadline nearer | both | swap and `fetch_min` AcqRel, first look Relaxed; `fence(SeqCst)` on both sides | the sleeper announces and then looks at the deadlines, the other publishes and then looks: one of them sees the other |
//! | `queued` flag | scheduling and popping threads | both | swap AcqRel | set after the unlock, cleared after the pop and before trying LOCK, so a pool with work is never absent from the ring and never in it twice |
//! | `parked` flag | who sleeps, scheduling threads | both | swap AcqRel, first look Relaxed; `fence(SeqCst)` on both sides | the sleeper announces and then looks, the other publishes and then looks: one of them sees the other |
//! | free list head (index and tag) | threads that lost LOCK, refilling holders | both | pop: load and CAS Acquire; push: CAS Release | the links of the batch and the last use of the entries; the tag makes an old head fail |
//! | completion ring ends | one writer each | the other | Release, Acquire | the completion, and the room for the next |
//!
//! `SeqCst` appears only as a fence, and only in those places where one thread stores and then loads what another
//! loads after storing. There, no pair of acquire and release is enough.
//!
//! # Where to change what
//!
//! | to change | go to | and its proof |
//! | --- | --- | --- |
//! | who is next among bands (WFQ, strict) | `select/band/`: `credits.rs`, `virtual_time.rs`, `wfq.rs` | `tests/vectors`, `tests/fairness.rs`, `tests/wfq.rs` |
//! | the weights | `select/band/weights.rs` | the same; worked tables in `select/band/TABLES.md` |
//! | what a reload changes, what an unknown priority gets | `shard/plan.rs`, `engine/{reload,templates}.rs` | `tests/{reload,reload_text,reload_whole,templates}.rs` |
//! | who bypasses the slots | `shard/exempt.rs` | `tests/exempt.rs` |
//! | how long a request waits, with backends and without | `types/patience.rs`, `shard/backends.rs` | `tests/deadlines.rs` |
//! | how much may wait | `shard/limits.rs` | `tests/limits.rs` |
//! | what a pool of backends reads, and when it is stale | `admit/detect/` | vectors of saturation, properties beside them |
//! | when a report comes into force, what counts as sent since | `shard/reports.rs`, `engine/reports.rs` | `tests/reports.rs` |
//! | when a band is gated | `admit/ceiling/` (shapes, adaptive, reflective), `admit/gates/` (counts, sources) | vectors of holdback, tests beside them |
//! | what a cap is, what is charged | `admit/caps.rs`; who waits for it: `queue/bands.rs` | `tests/lifecycle.rs`, `tests/model.rs` |
//! | order among flows, first come first served | `queue/order.rs` (the key), `queue/band.rs` | `queue/tests` |
//! | another order: its rule | `select/flow/`, `select/request/` | vectors, `tests/flows.rs` |
//! | another order: how it is kept | `queue/ranked.rs`, `queue/leftist.rs` | `queue/tests/ranked.rs` |
//! | when a flow is forgotten | `config/flows/sweep.rs`, `shard/cold.rs`, `engine/flows.rs` | `tests/idle_flows.rs` |
//! | a step of the lock protocol | `admit/word.rs`, `shard/turn.rs`, `shard/quick.rs`, `shard/execute.rs` | `loom-tests`, each with its planted bug |
//! | what a grant, a release or an enqueue does to a pool | `shard/rules.rs`, for both kinds of turn | `tests/model.rs` |
//! | the engine ceiling | `shard/ceiling.rs` | `tests/ceiling.rs` |
//! | how a thread sleeps and is woken | `notify/parker/`, `notify/doorbell.rs`; who sleeps: `engine/driver.rs` | `tests/drivers.rs`, loom models of the bell |
//! | a configuration key | `config/load/keys.rs`, one table for loader, schema and CONFIG.md | `config/load/tests` |
//!
//! # Decisions, and what was rejected
//!
//! ## One owner and one word a pool
//! A pool is the unit of exactness: one limit, one order. Its word carries the free slots, the number of waiters and
//! the lock together, so that one compare-and-swap can say "there is room, and nobody is being overtaken".
//! *Rejected:* a queue per core with stealing: each core is fair and the pool is not. A semaphore beside a queue: a
//! newcomer takes the slot between the two. A task that owns the state: two context switches a request.
//!
//! ## The word is a type of our own
//! `PoolWord` is a newtype over the facade's `AtomicU64`, with the fields and the legal transitions as its methods.
//! *Rejected:* the `atomic` crate's `Atomic<T>`. It names the standard library's atomics itself, so the loom models
//! would run a look-alike and prove nothing about what ships.
//!
//! ## Free slab indices are cached under LOCK
//! Each pool keeps a stack of free indices in its plain memory and refills it in batches from a shared list whose
//! head carries a tag. Only a caller that lost the lock, and so must make its entry before it owns anything, goes to
//! the shared list.
//! *Rejected:* caches per thread. They need thread-local storage on the path, strand indices in threads that sleep,
//! and need a destructor that runs at thread exit inside a host that we do not control.
//!
//! ## A timer wheel a pool
//! Only the holder of a pool's lock changes its entries, so only that holder can arm, disarm and fire their
//! deadlines. Each pool therefore has its wheel, publishes its next deadline, and the keeper sleeps to the least of them.
//! The links of a timer are 8 bytes in an array beside the slab's entries, for setting or stopping one writes to its
//! neighbours, which are any requests; the deadline stays in the request, since only a timer that moves down asks for it.
//! *Rejected:* one wheel a shard. Every insertion would need a second owner, and every expiry would have to ask
//! whether its entry is still the same.
//!
//! ## Marks are bits of the pool's node on the urgent list
//! A changed size, a changed gate, a drain, a shutdown, a recall of ceiling units and units that arrived (mail) are announced by a bit in the pool's own node,
//! and the node stands on the same list as cancels and releases. So the look after an unlock is two loads: the stamp
//! of the next cell, and the head of the urgent list.
//! *Rejected:* a word of marks, which is a third load on every unlock; and bits in the pool's word, which the holder's
//! plain store at the unlock would wipe.
//!
//! ## A Rust permit borrows
//! `Permit<'_>` borrows the handle of its pool, `OwnedPermit` holds a reference count. The borrow costs nothing, and a
//! count shared by all callers would be a second contended line on a path whose floor is one compare-and-swap.
//! *Rejected:* reference counts in every permit; and a raw pointer in it, which the borrow checker could not defend.
//!
//! ## First come, first served among flows: lanes in a packed heap
//! A lane is one (flow, band) with something waiting. Lanes that just got their first request stand in a list, which
//! is in the order of arrival by itself; a packed 4-ary heap orders those whose head has changed: key and index in one
//! `u64`. A lane that may not run because a cap is full leaves the heap and is parked
//! at whoever capped it, its flow or its tenant; the release that makes room puts it back.
//! *Rejected:* one list of all requests, in which every decision walks over what is capped; and leaving capped lanes in
//! the heap, which makes a decision as slow as there are capped tenants.
//!
//! ## Other orders are ranks, and first come, first served asks nobody
//! A fairness among flows and an order within a flow are each a rank: given to a request when it is queued, to a flow
//! when it begins to wait or its first request changes. The queue keeps them in leftist heaps whose links stand beside
//! what they link, so anything leaves in O(log n) and nothing is allocated; only pools with such a band have the tables.
//! Round robin is the place (round, flow) at which its scan would find the flow. A flow that its cap holds back keeps
//! its place and is served there as soon as it has room, once a round still. An order is that of its priority for the
//! pool's life.
//! *Rejected:* one general queue for all orders, which made the usual one pay; packed 40-bit keys for deadlines, which
//! would need the exact comparison beside them in every step; a scan over the flows, which is as slow as there are
//! flows; a new place in the round for whoever gets room, which moves all keys of a tenant with one release; and
//! sorting a queue anew under LOCK when a reload names another order.
//!
//! ## Flows are forgotten under pressure, and handles carry a generation
//! A row counts the flows it has stood for, a handle names one of them, and the first look at the row under LOCK
//! compares the two: three instructions on the paths that name a flow. Forgotten is only what has neither permits nor
//! waiters, what was not served since it was last looked at, and only in a call that makes a new flow (or when the host
//! asks), while more than half of the table is in use: so a handle that a host keeps stays good in ordinary life.
//! *Rejected:* the time of the last use in each row, which needs a clock on the path; a sweep by the keeper, which wakes a
//! sleeping process to forget what costs nothing; and indices that are never used again, which a client that
//! makes up names would use up.
//!
//! ## What the band policy counts
//! A grant made under LOCK is recorded by the band policy, even if nobody waited. A fast admit that looked at the
//! pool's limit alone is not: it happened because nobody competed, and counting it would need a second shared word.
//! *Rejected:* counting everything, which doubles the cost of the uncontended path; counting only grants under
//! contention, which would need "contention" defined for callers that overlap.
//!
//! ## Policies of the host travel in the settings
//! A registered type becomes a `Custom` in the settings: name, parameters in one canonical line, and the factory.
//! Equality is that of name and parameters, so a reload sees what changed, and an engine needs no registry. A host's
//! order over the bands is known to general turns alone; to the quick turn it is strict and never met.
//! *Rejected:* a registry in the engine, which every reload and replay would have to carry; an arm for it in the quick
//! walk, which every pool would pay for.
//!
//! ## Refused by name
//! Policies and keys of later versions are refused with their path and the words "not available in this version", not
//! ignored.
//! *Rejected:* accepting and ignoring unknown policies. A configuration that loads is one that is obeyed.
//!
//! ## Ceilings that move have no slot count
//! A ceiling that stays is a count of running requests, and the pool-only fast path compares that alone. Ceilings that
//! follow the busy bands, a signal or the number of decisions, and saturations that follow samples or tokens, move
//! without any change of that count: such a pool has every reserve at "gated", so each admit is decided under LOCK by
//! gates that were asked in the same decision.
//! *Rejected:* republishing reserves at each change. Between a change and its publication the fast path would admit what
//! is gated, and the soft-reflective policy changes with every decision.
//!
//! ## Adaptive pressure is a line through one anchor
//! Pressure is computed from the last moment the signal held it up, not summed from look to look. So it does not depend
//! on how often anybody looked, rounding never adds up, and a pool that slept wakes with the right ceilings.
//! *Rejected:* an exponential average, which needs a time step and is different for each; a controller with a second
//! state (an integral term), which can oscillate under a constant signal.
//!
//! ## A hint shortens, a host's own timeout stands
//! The host is trusted, its clients are not: `Request::timeout` replaces what the configuration says, `ttl_hint` (a
//! client's header) only shortens it. All of it is one word of the request, so no call reads more than before.
//! *Rejected:* clamping the host's timeout too, which leaves no way to wait longer in one call than in the others.
//!
//! ## Two budgets, no walk when backends go or come
//! A pool with `noBackendTtl` looks at a waiter when the nearer of "due under this regime" and "now and the other
//! budget" comes: a flip cannot make it due before. Who is found not due is looked at again, at most once per budget.
//! *Rejected:* re-arming everybody at a flip (unbounded under the lock); a periodic sweep, which is late by its period.
//!
//! ## Waker cells are `atomic-waker`, in a wrapper
//! Registering a waker against a concurrent wake is a protocol of its own with a proven small crate. It clones and
//! drops wakers while the cell is claimed, so a waker that panics there would leave an index nobody is ever woken
//! under; the wrapper (`slab/waker.rs`) does both outside.
//! *Rejected:* writing it again; and a mutex around the waker, which blocks a host's thread inside a poll.
//!
//! ## Completions carry their permits
//! What a completion ring delivers is the permit itself, by value. So the entry is freed at the grant, and the slab
//! bounds those who wait, not those who run.
//! *Rejected:* delivering a ticket to be redeemed. The entry would have to live until the host comes back, and a slow
//! host could fill the slab with requests that already run.
//!
//! ## Lock first, ring on failure
//! An uncontended caller does its work itself, with everything in cache; the ring is only for those who found the lock
//! taken, and they never wait for it.
//! *Rejected:* ring first (every call pays two hand-overs); spinning for the lock (a descheduled holder stops the host).
//!
//! ## The unlock has a fence
//! *Rejected for now:* the form without a fence that uses `membarrier`. It is faster when nobody competes and has a
//! microsecond of tail when callers hammer, because losers wait for holders.
//!
//! ## Exact integers
//! Weights, virtual times and scores are integers, and fractions are compared in 128 bits. No float decides who is
//! next, so that a replay, a test and production agree to the last grant.
//!
//! ## Turns with nothing else to do are shorter
//! A call that takes LOCK and finds no command, nothing urgent and nothing due needs none of a turn but its own command,
//! at most one decision, and the unlock (`shard/quick.rs`). The rules it applies are those of the general turn
//! (`shard/rules.rs`), fence and second look included; what is out of the ordinary goes to the general turn.
//! *Rejected:* one code path for all: the empty steps were half of the time of an admit with limits. A second copy of the
//! rules: the two would drift apart.
//!
//! ## Places in a completion ring are reserved in batches
//! A queued submit must have a place for its outcome. The holder reserves a batch of places with one read-modify-write
//! and hands them out as plain numbers; the consumer gives them back in batches too, and at once when it finds the
//! ring empty. A submit that lost the lock reserves its own.
//! *Rejected:* one reservation a submit, which is two more locked instructions on every hand-off.
//!
//! ## The ceiling is always leased, never a second number
//! With `engine.ceiling` set every pool's effective size is what it has leased. If the pools' slots fit under the
//! ceiling they hold all of it and nobody ever asks, so eliding needs no mode of its own, and a resize that makes the
//! sum too large needs no switch. A pool that shrinks gives its units back as they become idle, so that the sum of what
//! runs stays under the ceiling.
//! *Rejected:* a flag that turns leasing on; changing it while calls are on their way would have been a protocol.
//!
//! ## Weighted schedules under more than one moving gate
//! Where two gates flap, the literal rules starve a band that always has weight. Four rules are added here: an owed band that
//! was repaid a whole quota while another is still owed goes behind it; bands that rejoin together keep their order; a
//! moment in which every band is gated is no ranking; an added band starts at the least virtual time of those that were
//! eligible at the last ranking. With one gate moving the decisions are the literal ones, and `tests/fairness/literal.rs` compares them.
//! And a look turns no round of which nothing was used: where all eligible bands have weight 0 the literal rule turns one
//! with every look, and owes the gated bands as many quotas as the pool was looked at, up to one. From the first
//! dispatch on both are the same.
//!
//! ## A drain ends at a place in the ring
//! Admits end behind what the ring held when the drain came into force, a hole included; until then newcomers are refused
//! and who was accepted goes on.
//! *Rejected:* closing when the ring is found empty, which whoever keeps it full postpones for ever; closing at the
//! first hole, which refuses who was accepted behind it.
//!
//! ## Saturation without a word is running over slots
//! A `flowControl:` document that names no detector has the pool's own count, although the reference then makes a
//! utilisation detector: that one reads metrics it scrapes itself, and here nothing is scraped. Without a host that
//! reports, such a detector would see no backend, read 1.0 and hold back every request. For the same reason a pool with a
//! detector counts slots until the first report; an empty report is a pool without backends and reads 1.0.
//! *Rejected:* the reference's default, which starts closed in every host that does not know of it.
//!
//! ## A sample and what was sent since
//! A sample is old when it is used, and a pool decides many times between two. So a detector says with each reading how
//! much one more request can add at most, wherever it is placed, and the pool adds that per dispatch until the next
//! reading. Of those dispatched since only as many count as are still running: a pool of short requests is not
//! closed by its own past. A property test places bursts on backends at random and reads again.
//! *Rejected:* smoothing (late where it matters), and subtracting what ended (a request that ends on one backend makes no
//! room in the queue of another).
//! Where tokens count, the pool keeps track of who runs, since only the entry of a request says what it cost; a hybrid
//! request is then bounded by both of its terms together, so such a pool opens late rather than early.
//!
//! ## A report is read over its whole life at once
//! A sample ages when nobody reports, and age decides what it counts as. So a report is read on the host's thread for now
//! and for each later time at which a sample becomes stale, at most 33 times, neighbours together beyond that. Under LOCK a
//! pool moves on to the step its clock has reached: by its next decision, or by a timer if somebody is held back. No
//! detector runs under LOCK, and a clock turned by hand gives the same decisions. The report is kept: a reload that
//! changes the detector reads it again, with the age it has. One without a detector forgets it.
//! *Rejected:* detectors under LOCK (as long as there are backends, and a host's own could call back); a timer of the
//! reporting thread, whose decisions would depend on when it ran; merging reports of several threads, which needs a
//! name and an end of life for each source: the last report stands whole, and a gauge stands before it.
//!
//! ## Backends of which nothing is known
//! Metrics that are stale count as full, or not at all, or are probed: one request at a time while the pool is otherwise
//! idle. A probe never opens a band whose ceiling is 0, and never runs beside other requests, because what those do
//! to a backend that does not report is just what is not known. How often a host refreshes its metrics is not visible
//! from here, so a threshold below that interval cannot be refused; `CONFIG.md` says it at the key.
//! *Rejected:* failing open after a while (a backend that died under load gets all of it back at once).
//!
//! ## What waits is booked only where it is limited
//! A pool with a limit, or of an engine with one, takes the general turn and books every wait under LOCK; the lock-free
//! admits stay, since who runs at once does not wait. Under our keys an absent limit is none: the places of the shard
//! bound memory, so nothing is booked by default. A band listed in `priorityBands` has the reference's defaults. A
//! reload counts who waits anew, O(waiting), once. What waits in the whole engine stands in three atomics that only
//! engines made with such a limit have.
//! *Rejected:* counters in every pool (a store per wait for a bound nobody set).
//!
//! ## The schema comes from the key table
//! One table of keys drives unknown-key detection, suggestions, the reference and the JSON Schema.
//! *Rejected:* deriving the schema from types: the document is read as a located tree, so that all faults are reported
//! together with their lines, and the types would have been a second list of the same keys.
//!
//! ## A reload is one plan, made outside the lock
//! Rules, bands, mode and slots of a pool are made as one table before LOCK is taken and change places with the old one in
//! a single hold; the decision at the end of it is the first that follows them. Caps of tenants and keys come row by row
//! behind it, 256 a hold. What the host set meanwhile (mode, bands added) is part of what is in force.
//! *Rejected:* slots by the resize mark after the rules: for a moment the ceilings of one document stood beside the slots of
//! the other, and four ran where both allow one.
//!
//! ## Made bands take the lock, and their index is theirs for ever
//! A band made of a template for an unknown priority is not plain and its reserve is closed: whoever names it takes LOCK and
//! leaves a bit there, so idleness is known without a write on the fast path. A removed band keeps its index, for a handle
//! never means another priority: `maxBands` bounds what clients can make in a pool's life.
//! *Rejected:* a time per band on every admit; reusing an index under a generation, which every request would carry.
//!
//! ## Exempt flows hide behind the refusal
//! Their row accepts nobody, as a cap of 0 does, so the quick turn and the fast path have no question more; the cold code
//! that explains the refusal lets them through. Such a permit keeps a slab entry that says "no slot", so that a reload in
//! between cannot make it free one; in a full slab it has none and its end does nothing.
//! *Rejected:* a flag in the request (the caller would decide), and a number in the permit (it has to stay 16 bytes).
//!
//! ## Sleeping by io_uring
//! Each sleep is one `io_uring_enter` with its own timeout beside the multishot poll on the doorbell.
//! *Rejected for now:* one absolute timeout updated in place (a submission more for every sleep), and waking by
//! `MSG_RING` (a ring for every waker). Both belong to tuning, behind the same `Parker`.
