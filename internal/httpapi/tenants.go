package httpapi

import (
	"net/http"

	"lessor"
)

type tenantList struct {
	Tenants    []lessor.Tenant `json:"tenants"`
	NextCursor *string         `json:"nextCursor"`
}

type classList struct {
	Classes    []lessor.Class `json:"classes"`
	NextCursor *string        `json:"nextCursor"`
}

var errNoTenant = &lessor.Error{Code: lessor.CodeTenantNotFound, Detail: "no such tenant"}

func (c *call) tenants() error {
	tenants, next, err := c.api.scheduler.Tenants(c.r.Context(), c.caller, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, tenantList{tenants, cursorOf(next)})
}

func (c *call) tenant(id lessor.TenantID) error {
	return c.replyVersion(c.api.scheduler.Tenant(c.r.Context(), c.caller, id))
}

func (c *call) setTenant(id lessor.TenantID, ask *lessor.TenantAsk) error {
	return c.replyVersion(c.api.scheduler.SetTenant(c.r.Context(), c.caller, id, *ask))
}

func (c *call) classes(id lessor.TenantID) error {
	all, err := c.api.scheduler.Classes(c.r.Context(), c.caller, id)
	if err != nil {
		return err
	}
	page, next, err := pageOf(all, func(k lessor.Class) string { return k.Class }, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, classList{page, next})
}

func (c *call) class(id lessor.TenantID) error {
	name := c.r.PathValue("class")
	if !isText(name) {
		return badValue("class", "must be UTF-8 text without NUL characters")
	}
	return c.replyVersion(c.api.scheduler.Class(c.r.Context(), c.caller, id, name))
}

func (c *call) setClass(id lessor.TenantID, ask *lessor.TenantAsk) error {
	return c.replyVersion(c.api.scheduler.SetClass(c.r.Context(), c.caller, id, c.r.PathValue("class"), *ask))
}
