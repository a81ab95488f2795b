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

// tenantID returns the id in the path. An ill-formed id names no tenant.
func (c *call) tenantID() (lessor.TenantID, error) {
	u, err := lessor.ParseUUID(c.r.PathValue("tenantId"))
	if err != nil {
		return lessor.TenantID{}, errNoTenant
	}
	return lessor.TenantID{UUID: u}, nil
}

func (c *call) tenants() error {
	tenants, next, err := c.api.scheduler.Tenants(c.r.Context(), c.caller, c.limit(), c.query.Get("cursor"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, tenantList{tenants, cursorOf(next)})
}

func (c *call) tenant() error {
	id, err := c.tenantID()
	if err != nil {
		return err
	}
	tenant, err := c.api.scheduler.Tenant(c.r.Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.answerVersion(http.StatusOK, tenant)
}

func (c *call) setTenant(ask *lessor.TenantAsk) error {
	id, err := c.tenantID()
	if err != nil {
		return err
	}
	tenant, err := c.api.scheduler.SetTenant(c.r.Context(), c.caller, id, *ask)
	if err != nil {
		return err
	}
	return c.answerVersion(http.StatusOK, tenant)
}

func (c *call) classes() error {
	id, err := c.tenantID()
	if err != nil {
		return err
	}
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

func (c *call) class() error {
	id, err := c.tenantID()
	if err != nil {
		return err
	}
	name := c.r.PathValue("class")
	if !isText(name) {
		return badValue("class", "must be UTF-8 text without NUL characters")
	}
	class, err := c.api.scheduler.Class(c.r.Context(), c.caller, id, name)
	if err != nil {
		return err
	}
	return c.answerVersion(http.StatusOK, class)
}

func (c *call) setClass(ask *lessor.TenantAsk) error {
	id, err := c.tenantID()
	if err != nil {
		return err
	}
	class, err := c.api.scheduler.SetClass(c.r.Context(), c.caller, id, c.r.PathValue("class"), *ask)
	if err != nil {
		return err
	}
	return c.answerVersion(http.StatusOK, class)
}
