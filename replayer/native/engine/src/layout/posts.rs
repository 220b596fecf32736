//! What the threads of a task are at, so that a call that hangs can be named while it does.

use crate::clock;
use crate::lock::hold;
use std::cell::OnceCell;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

/// A call under way.
struct Doing {
    op: &'static str,
    path: Vec<u8>,
    since: Instant,
}

type Post = Arc<Mutex<Option<Doing>>>;

thread_local! {
    /// A thread works for one task only.
    static POST: OnceCell<Post> = const { OnceCell::new() };
}

/// One post for each thread of a task.
#[derive(Default)]
pub(crate) struct Posts {
    posts: Mutex<Vec<Post>>,
    base: OnceLock<String>,
}

impl Posts {
    /// The run's folder, as a person sees it.
    pub(crate) fn below(&self, base: Option<String>) {
        if let Some(base) = base {
            // The only value it is ever given.
            let _first = self.base.set(base);
        }
    }

    pub(crate) fn at(&self, op: &'static str, path: &[u8]) {
        let doing = Doing {
            op,
            path: path.to_vec(),
            since: Instant::now(),
        };
        POST.with(|post| {
            let post = post.get_or_init(|| self.new_post());
            *hold(post) = Some(doing);
        });
    }

    fn new_post(&self) -> Post {
        let post = Post::default();
        hold(&self.posts).push(Arc::clone(&post));
        post
    }

    /// A call of this thread has returned; another one on the same path begins.
    pub(crate) fn goes_on() {
        POST.with(|post| {
            if let Some(post) = post.get() {
                hold(post)
                    .iter_mut()
                    .for_each(|doing| doing.since = Instant::now());
            }
        });
    }

    /// This thread makes no calls for now.
    pub(crate) fn away() {
        POST.with(|post| {
            if let Some(post) = post.get() {
                *hold(post) = None;
            }
        });
    }

    /// Calls under way for longer than a limit, longest first: op, path, age in nanoseconds.
    pub(crate) fn hanging(&self, after_ns: u64) -> Vec<(&'static str, String, u64)> {
        let posts = hold(&self.posts).clone();
        let mut hanging: Vec<_> = posts
            .iter()
            .filter_map(|post| hold(post).as_ref().map(|doing| self.seen(doing)))
            .filter(|&(.., age_ns)| age_ns > after_ns)
            .collect();
        hanging.sort_by_key(|&(.., age_ns)| std::cmp::Reverse(age_ns));
        hanging
    }

    fn seen(&self, doing: &Doing) -> (&'static str, String, u64) {
        let base = self.base.get().map_or("", String::as_str);
        let path = String::from_utf8_lossy(&doing.path);
        let path = if path.is_empty() {
            base.to_owned()
        } else {
            format!("{base}/{path}")
        };
        (doing.op, path, clock::ns(doing.since.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_while_it_lasts_and_forgotten_when_it_is_over() {
        let posts = Posts::default();
        posts.below(Some("/mnt/replayer-x".to_owned()));
        posts.at("create", b"files/a");
        let hanging = posts.hanging(0);
        assert_eq!(hanging.len(), 1);
        assert_eq!(
            (hanging[0].0, &*hanging[0].1),
            ("create", "/mnt/replayer-x/files/a")
        );
        assert!(posts.hanging(u64::MAX).is_empty());
        posts.at("unlink", b"");
        assert_eq!(posts.hanging(0)[0].1, "/mnt/replayer-x");
        Posts::away();
        assert!(posts.hanging(0).is_empty());
    }

    #[test]
    fn the_longest_comes_first() {
        let posts = Posts::default();
        posts.at("create", b"old");
        std::thread::scope(|scope| {
            scope.spawn(|| posts.at("create", b"new"));
        });
        let paths: Vec<_> = posts.hanging(0).into_iter().map(|hang| hang.1).collect();
        assert_eq!(paths, ["/old", "/new"]);
        Posts::goes_on();
        let paths: Vec<_> = posts.hanging(0).into_iter().map(|hang| hang.1).collect();
        assert_eq!(paths, ["/new", "/old"]);
    }
}
