//! Executes one parsed request. Most verbs have their own submodule.
//!
//! Guarantees:
//! - a verb that the resource does not support results in a 405 error, and an unknown subresource in a 404
//!   error;
//! - with a data directory, the response to a write is returned after the write is on the disk.
//!
//! The `serve` module checks access and applies faults. This module does not.

mod admission;
pub(crate) mod apply;
pub(crate) mod binding;
pub(crate) mod create;
pub(crate) mod definition;
pub(crate) mod delete;
pub(crate) mod delete_object;
pub(crate) mod discovery;
mod document;
mod eviction;
pub(crate) mod garbage_collection;
pub(crate) mod get;
pub(crate) mod list;
mod log;
mod metrics;
pub(crate) mod namespace;
pub(crate) mod namespace_content;
pub(crate) mod openapi;
mod ownership;
pub(crate) mod patch;
mod put;
pub(crate) mod scale;
mod sent;
mod service_address;
mod show;
mod signing_request;
mod subresource;
mod token_request;
pub(crate) mod update;
pub(crate) mod watch;
pub(crate) mod write;

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::access::User;
use crate::access::approval::Approver;
use crate::access::escalation::RbacWrite;
use crate::access::review::{Reviewing, review};
use crate::body_limit::Received;
use crate::field_validation::Warnings;
use crate::long_write::{FollowUp, LongWrite};
use crate::negotiate::{Content, Encoding};
use crate::object::Object;
use crate::protobuf;
use crate::reply::Reply;
use crate::request_log::LoggedRequest;
use crate::route::{Destination, ListOptions, Query, Target, Verb, WriteOptions};
use crate::shared::{ManagedFields, Shared};
use crate::status::{ApiError, FieldError};
use crate::storage::Entry;
use crate::strategy::Part;

use apply::Applied;
use definition::Definitions;
use delete_object::Deleted;
use garbage_collection::Collecting;
use list::{ListCall, Page};
use namespace::Emptying;
use patch::Rigour;
use watch::WatchCall;
use write::{How, Subject, Tracking};

/// One parsed request whose access has been checked and whose body has been read.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    /// The authenticated or anonymous user of the request.
    pub(crate) user: Arc<User>,
    /// The request's entry in the request log.
    pub(crate) request: Arc<LoggedRequest>,
    pub(crate) destination: Destination,
    pub(crate) verb: Verb,
    pub(crate) is_get: bool,
    pub(crate) query: Query,
    pub(crate) options: ListOptions,
    /// The warnings that the response will contain in its `Warning` headers.
    pub(crate) warnings: Arc<Warnings>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Received,
}

// === impl Call ===

impl Call {
    /// Executes the request and returns the response.
    ///
    /// # Cancel safety
    ///
    /// A write to one object is made completely or not at all. Dropping the future never undoes a change. The
    /// deletion of a collection stops if the future is dropped, but the deletion of a namespace is still
    /// completed.
    pub(crate) async fn answer(self) -> Result<Reply, ApiError> {
        if let Destination::Resource(target) = &self.destination
            && let Some(warning) = &target.resource.kind.deprecation
        {
            self.warnings.add(warning.to_string());
        }
        match &self.destination {
            Destination::Resource(target) if self.verb.is_write() => {
                let before = self.shared.before_write();
                // Before the write: it is completed even if the future is dropped.
                let collecting = Collecting::after_writes(&self.shared);
                let answer = self.answer_resource(target).await;
                // The deletion of a collection can fail after it has removed objects.
                let is_deletion = matches!(self.verb, Verb::Delete | Verb::DeleteCollection);
                // An eviction is a POST that deletes.
                let creates = self.verb == Verb::Create && target.subresource.is_none();
                if is_deletion || (answer.is_ok() && !creates) {
                    // Both values exist before the first await: a drop completes both.
                    let definitions = self.follow_definition(target);
                    let emptied = self.continue_deletion(target).run().await;
                    definitions.run().await.and(emptied)?;
                }
                if let Some(collecting) = collecting {
                    collecting.run().await?;
                }
                // An error may also be based on a write that is not durable yet.
                self.shared.settled(before).await?;
                answer
            }
            Destination::Resource(target) => self.answer_resource(target).await,
            _ => self.answer_document(),
        }
    }

    /// Returns the work that follows a write to a `CustomResourceDefinition` or to a custom object.
    fn follow_definition(&self, target: &Target) -> FollowUp<Definitions> {
        let name = target.name.as_deref();
        Definitions::after_write(&self.shared, &target.resource, name)
    }

    /// Returns the [`Emptying`] that continues the deletion of a namespace after this request.
    ///
    /// The namespace is the one that the request has deleted, or else the namespace of the target. In a
    /// Terminating namespace, the request may have removed the last pod or the last object.
    fn continue_deletion(&self, target: &Target) -> FollowUp<Emptying> {
        match (self.verb, Self::subject(target)) {
            (Verb::Delete, Ok(subject)) => {
                Emptying::after_delete(&self.shared, subject, How::EMPTYING)
            }
            _ => Emptying::after_write(
                &self.shared,
                &target.resource,
                target.namespace.as_deref(),
                How::EMPTYING,
            ),
        }
    }

    async fn answer_resource(&self, target: &Target) -> Result<Reply, ApiError> {
        if let Some(subresource) = &target.subresource {
            return self.answer_subresource(target, subresource);
        }
        let of_all_namespaces = target.resource.is_namespaced() && target.namespace.is_none();
        let reads_many = matches!(self.verb, Verb::List | Verb::Watch);
        if target.resource.kind.custom && of_all_namespaces && !reads_many {
            return Ok(nowhere());
        }
        let serves = |verb: Verb| target.resource.serves(verb.as_str());
        if self.verb == Verb::Watch && serves(Verb::List) && !serves(Verb::Watch) {
            return Err(ApiError::not_supported(&target.resource.kind, "watch"));
        }
        if !serves(self.verb) || (self.verb == Verb::DeleteCollection && of_all_namespaces) {
            return Err(ApiError::method_not_allowed());
        }
        self.selected(target)?;
        target.check_name(self.verb)?;
        match self.verb {
            Verb::Get => {
                self.query.check_export()?;
                let entry = get::get(&self.shared, Self::subject(target)?, &self.options).await?;
                self.show(target, StatusCode::OK, &entry)
            }
            Verb::List => self.list(target).await,
            Verb::Watch => {
                let call = WatchCall {
                    resource: &target.resource,
                    namespace: target.namespace.as_deref(),
                    name: target.name.as_deref(),
                    options: &self.options,
                    format: self.format(target, Content::Watch)?,
                    request: &self.request,
                    is_over: self
                        .query
                        .number("timeoutSeconds")?
                        .is_some_and(|seconds| seconds < 0),
                };
                let encoding = call.format.encoding;
                let body = watch::watch(&self.shared, call).await?;
                let mut reply = Reply::new(StatusCode::OK, body, None);
                if encoding == Encoding::Protobuf {
                    reply.content_type = protobuf::WATCH_CONTENT_TYPE;
                }
                Ok(reply)
            }
            Verb::Create => self.create(target),
            Verb::Update => {
                let how = self.how(Part::Main)?;
                let subject = Self::subject(target)?;
                let object = self.sent_update(subject)?;
                let may_create = || self.shared.gate.admit_create(&self.user, target);
                let (entry, is_new) = put::put(&self.shared, subject, &object, how, may_create)?;
                self.show(target, written(is_new), &entry)
            }
            Verb::Patch => {
                let (entry, is_new) = self.patch(target, Part::Main)?;
                self.show(target, written(is_new), &entry)
            }
            Verb::Delete => self.delete(target),
            Verb::DeleteCollection => self.delete_collection(target).await,
            Verb::Other => Err(ApiError::method_not_allowed()),
        }
    }

    async fn page(&self, target: &Target) -> Result<Page, ApiError> {
        let call = ListCall {
            resource: &target.resource,
            namespace: target.namespace.as_deref(),
            options: &self.options,
        };
        list::list(&self.shared, call).await
    }

    async fn list(&self, target: &Target) -> Result<Reply, ApiError> {
        let page = self.page(target).await?;
        let format = self.format(target, Content::List)?;
        self.show_page(target, format, page).await
    }

    fn create(&self, target: &Target) -> Result<Reply, ApiError> {
        let resource = &target.resource;
        if resource.kind.is_builtin("bindings") {
            return self.bind_by_collection(target);
        }
        if !resource.serves("get") {
            let value = self.sent(resource)?.into_value();
            let reviewed = self.shared.with_referents(|referents| {
                let reviewing = Reviewing {
                    asker: &self.user,
                    kind: &resource.kind,
                    namespace: target.namespace.as_deref(),
                    referents,
                };
                review(&self.shared.gate, &reviewing, value)
            })?;
            return self.show_document(target, StatusCode::CREATED, &reviewed);
        }
        let how = self.how(Part::Main)?;
        let mut object = self.sent(resource)?;
        // As in Kubernetes, an update that creates an object keeps these members.
        for member in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            object.set_meta(member, None);
        }
        self.record_user(&resource.kind, &mut object);
        if target.lacks_namespace {
            let required = FieldError::required("metadata.namespace", "");
            let kind = &resource.kind;
            return Err(ApiError::invalid(kind, object.text("name"), &[required]));
        }
        let entry = create::create(
            &self.shared,
            resource,
            target.namespace.as_deref(),
            object,
            how,
        )?;
        if !how.dry_run {
            let name = Some(entry.name());
            Definitions::after_write(&self.shared, resource, name).complete();
        }
        self.show(target, StatusCode::CREATED, &entry)
    }

    fn update(&self, target: &Target, part: Part) -> Result<Arc<Entry>, ApiError> {
        let how = self.how(part)?;
        let object = self.sent_update(Self::subject(target)?)?;
        update::update(&self.shared, Self::subject(target)?, &object, how)
    }

    /// Patches or applies. Returns whether the object was created.
    fn patch(&self, target: &Target, part: Part) -> Result<(Arc<Entry>, bool), ApiError> {
        let subject = Self::subject(target)?;
        if self.is_apply() {
            let how = self.how(part)?;
            let applied = Applied::parse(&self.body)?;
            let may_create = || self.shared.gate.admit_create(&self.user, target);
            let options = self.apply_options();
            return apply::apply(&self.shared, subject, (&applied, options), how, may_create);
        }
        let body = self.patch_body(&target.resource.kind)?;
        let how = self.how(part)?;
        let rigour = Rigour {
            duplicates: body.duplicates(&self.body),
            directive: self.directive(),
            warnings: &self.warnings,
        };
        let patched = patch::patch(&self.shared, subject, &body, how, Some(&rigour))?;
        Ok((patched, false))
    }

    fn delete(&self, target: &Target) -> Result<Reply, ApiError> {
        let options = self.delete_options()?;
        self.warn_of_orphans(&target.resource, &options);
        let how = How::request(Part::Main, options.dry_run);
        let deleted = delete::delete(&self.shared, Self::subject(target)?, &options, how)?;
        match deleted {
            Deleted::Marked(entry) => {
                let code = StatusCode::from_u16(options.marked_code()).unwrap_or(StatusCode::OK);
                self.show(target, code, &entry)
            }
            Deleted::Removed(entry) if target.resource.strategy.returns_deleted => {
                self.show(target, StatusCode::OK, &entry)
            }
            Deleted::Removed(entry) => {
                let kind = &target.resource.kind;
                let object = Object::stored(entry.object(&target.resource));
                let mut details =
                    json!({"name": entry.name(), "kind": kind.plural, "uid": object.text("uid")});
                if !kind.group.is_empty() {
                    details["group"] = json!(kind.group);
                }
                let status = Reply::success(StatusCode::OK, Some(&details));
                let mut reply = self.show_document(target, StatusCode::OK, &status)?;
                reply.revision = Some(entry.revision);
                Ok(reply)
            }
        }
    }

    async fn delete_collection(&self, target: &Target) -> Result<Reply, ApiError> {
        let options = self.delete_options()?;
        self.warn_of_orphans(&target.resource, &options);
        let how = How::request(Part::Main, options.dry_run);
        let page = self.page(target).await?;
        let listed: Vec<Arc<Entry>> = page.entries.clone();
        // The response is built before anything is deleted, because building it can fail. Kubernetes also
        // deletes the objects if the client accepts no list.
        let reply = match self.format(target, Content::List) {
            Ok(format) => Ok(self.show_page(target, format, page).await?),
            Err(unfit) => Err(unfit),
        };
        let mut long = LongWrite::new(&self.shared);
        for listed in &listed {
            let subject = Subject {
                resource: &target.resource,
                namespace: listed.namespace(),
                name: listed.name(),
            };
            match delete::delete(&self.shared, subject, &options, how) {
                // The response is the list from before the deletions.
                Ok(_) => {
                    let name = Some(subject.name);
                    let work = Definitions::after_write(&self.shared, subject.resource, name);
                    let emptying = Emptying::after_delete(&self.shared, subject, How::EMPTYING);
                    let emptied = emptying.run().await;
                    work.run().await.and(emptied)?;
                    long.wrote(target.resource.collection).await?;
                }
                // Another client has deleted the object meanwhile.
                Err(error) if error.code() == 404 => {}
                Err(error) => return Err(error),
            }
        }
        reply
    }

    /// Returns the options of a write to one part of an object.
    ///
    /// Validates the query options, for example `dryRun`.
    ///
    /// # Errors
    ///
    /// Returns a 422 error if a query option is invalid.
    fn how(&self, part: Part) -> Result<How<'_>, ApiError> {
        let dry_run = self.query.dry_run(match self.verb {
            Verb::Update => WriteOptions::Update,
            Verb::Patch if self.is_apply() => WriteOptions::Apply,
            Verb::Patch => WriteOptions::Patch,
            _ => WriteOptions::Create,
        })?;
        let tracking = match self.shared.settings.managed_fields {
            ManagedFields::OfAllWrites => Tracking::By(self.manager()),
            ManagedFields::OfApplies => Tracking::Off,
        };
        let target = self.destination.target();
        let rbac = target.and_then(|target| RbacWrite::new(&self.shared.gate, &self.user, target));
        let approver = target.filter(|_| part == Part::Approval);
        let approver = approver.map(|target| Approver {
            gate: &self.shared.gate,
            user: &self.user,
            kind: &target.resource.kind,
        });
        Ok(How {
            warnings: Some(&self.warnings),
            tracking,
            rbac,
            approver,
            ..How::request(part, dry_run)
        })
    }

    /// Returns the resource, namespace and name of the object that the path names.
    ///
    /// # Errors
    ///
    /// Returns a 405 error if the path names no object.
    fn subject(target: &Target) -> Result<Subject<'_>, ApiError> {
        let name = target.name.as_deref();
        Ok(Subject {
            resource: &target.resource,
            namespace: target.namespace.as_deref(),
            name: name.ok_or_else(ApiError::method_not_allowed)?,
        })
    }
}

/// Returns the status of the response to a successful write.
fn written(is_new: bool) -> StatusCode {
    if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

/// Returns the response for a path that no handler serves.
fn nowhere() -> Reply {
    Reply::plain(StatusCode::NOT_FOUND, "404 page not found\n")
}
