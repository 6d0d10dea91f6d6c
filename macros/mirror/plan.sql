{#- 2 and 3. Decide what to publish, after making sure that it can be.

    The definition of the table decides first: each kind of change has a macro `openmirroring__mirror_on_<kind>` below
    that returns `changes`, `rebuild` or `unchanged`. Then the rows decide.

    Args:
      rebuild: why the mirrored table is to be rebuilt in any case; none if what has changed decides
      moved: how the next snapshot is stored in another way; none if it is not -#}
{% macro mirror_plan(publication, target, next, columns, options, rewrite, rebuild, moved=none) %}
  {{ return(adapter.dispatch('mirror_plan', 'dbt')(publication, target, next, columns, options, rewrite, rebuild, moved)) }}
{% endmacro %}

{% macro openmirroring__mirror_plan(publication, target, next, columns, options, rewrite, rebuild, moved) %}
  {%- set landed = [] -%}
  {%- for column in columns -%}{%- do landed.append(mirror_landing(column).type) -%}{%- endfor -%}
  {%- set definition = adapter.table_definition(columns, landed, options) -%}
  {%- set snapshot = load_cached_relation(target) -%}
  {%- set was_view = snapshot is not none and snapshot.is_view -%}
  {%- set published = mirror_batch_id(snapshot) -%}
  {%- set journal = publication.verify(published, rebuild is not none or was_view) -%}

  {%- if not journal -%}
    {%- for warning in adapter.add_table(publication, definition) -%}
      {%- do exceptions.warn(warning) -%}
    {%- endfor -%}
    {{ return(mirror_plan_load(next, columns, 'initial', 'the table folder was gone' if published else '', definition, none)) }}
  {%- elif rebuild -%}
    {{ return(mirror_plan_load(next, columns, 'rebuild', rebuild, definition, journal)) }}
  {%- elif was_view -%}
    {{ return(mirror_plan_load(next, columns, 'rebuild', 'was a view meanwhile', definition, journal)) }}
  {%- endif -%}

  {%- if publication.restore_metadata(journal) -%}
    {%- do exceptions.warn(publication.table.metadata ~ ' was changed or lost. It has been written again as it was published.') -%}
  {%- endif -%}
  {%- set reasons = {'rebuild': [], 'changes': [], 'unchanged': [moved] if moved else []} -%}
  {%- for change in adapter.definition_changes(journal, definition) -%}
    {%- do reasons[context['openmirroring__mirror_on_' ~ change.kind](change)].append(change.detail) -%}
  {%- endfor -%}
  {%- if not reasons.rebuild -%}
    {%- set found = mirror_compare(publication, snapshot, next, columns, definition, journal, options, rewrite) -%}
    {%- if not definition.key_columns and found.rows.deleted -%}
      {%- do reasons[openmirroring__mirror_on_keyless_rows_gone()].append('rows changed or gone, and no unique_key to name them') -%}
    {%- endif -%}
  {%- endif -%}

  {%- if reasons.rebuild -%}
    {%- set reason = (reasons.rebuild + reasons.changes) | join('; ') -%}
    {%- if options.on_breaking_change == 'fail' -%}
      {%- do exceptions.raise_compiler_error(
        'Publishing this needs a rebuild of the mirrored table (' ~ reason ~ '), and on_breaking_change is fail. Nothing was changed. '
        ~ 'Undo the change in the model, or run with --full-refresh to drop the table and publish a full load.'
      ) -%}
    {%- endif -%}
    {{ return(mirror_plan_load(next, columns, 'rebuild', reason, definition, journal)) }}
  {%- elif found.rows or reasons.changes -%}
    {{ return(adapter.plan('changes', reasons.changes | join('; '), definition, found.rows, found.changed, found.in_full, journal=journal)) }}
  {%- endif -%}
  {{ return(adapter.plan('unchanged', reasons.unchanged | join('; '), definition, found.rows, journal=journal)) }}
{% endmacro %}


{#- The batch that a snapshot was published with. Where a format keeps the properties of its tables to itself, as Delta
    does, they are not in the list of the relations that dbt has made. -#}
{% macro mirror_batch_id(snapshot) %}
  {%- if not snapshot or snapshot.is_view or snapshot.batch_id -%}
    {{ return(snapshot.batch_id if snapshot else none) }}
  {%- endif -%}
  {%- for row in run_query('show tblproperties ' ~ snapshot).rows if row[0] == adapter.batch_id_property() -%}
    {{ return(row[1]) }}
  {%- endfor -%}
{% endmacro %}


{#- A full load: count its rows, and look at its keys.

    Args:
      journal: what it is planned against; none for an initial load -#}
{% macro mirror_plan_load(next, columns, publication, reason, definition, journal) %}
  {{ return(adapter.dispatch('mirror_plan_load', 'dbt')(next, columns, publication, reason, definition, journal)) }}
{% endmacro %}

{% macro openmirroring__mirror_plan_load(next, columns, publication, reason, definition, journal) %}
  {%- set keys = mirror_landed_names(definition.key_columns) -%}
  {%- if keys -%}
    {%- set k = keys | join(', ') -%}
    {%- set query -%}
      select coalesce(sum(n), 0), coalesce(bool_or(bad), false)
      from (
        select count(*) as n, count(*) > 1 or {{ mirror_any_null(keys) }} as bad
        from (
          select {{ mirror_together(k, mirror_is_small(columns)) }} {{ k }}
          from (select {{ mirror_landed_keys(definition.key_columns, adapter.columns_by_name(columns)) }} from {{ next }})
        )
        group by {{ k }}
      )
    {%- endset -%}
  {%- else -%}
    {%- set query = 'select count(*), false from ' ~ next -%}
  {%- endif -%}
  {%- set counts = run_query(query).rows[0] -%}
  {%- if counts[1] -%}
    {%- do mirror_refuse_keys(next, columns, definition) -%}
  {%- endif -%}
  {{ return(adapter.plan(publication, reason, definition, adapter.row_counts(inserted=counts[0]), journal=journal)) }}
{% endmacro %}


{#- 3. Duplicate and NULL keys: count them, and show a few. -#}
{% macro mirror_refuse_keys(next, columns, definition) %}
  {{ return(adapter.dispatch('mirror_refuse_keys', 'dbt')(next, columns, definition)) }}
{% endmacro %}

{% macro openmirroring__mirror_refuse_keys(next, columns, definition) %}
  {%- set keys = mirror_landed_names(definition.key_columns) -%}
  {%- set query -%}
    select count(*) over () as bad, {% for key in keys %}cast({{ key }} as string) as {{ key }}, {% endfor %}rows
    from (
      select {{ keys | join(', ') }}, count(*) as rows
      from (select {{ mirror_landed_keys(definition.key_columns, adapter.columns_by_name(columns)) }} from {{ next }})
      group by {{ keys | join(', ') }}
      having count(*) > 1 or {{ mirror_any_null(keys) }}
    )
    order by all
    limit 5
  {%- endset -%}
  {%- do adapter.refuse_keys(definition, run_query(query)) -%}
{% endmacro %}


{% macro mirror_key_list(keys) %}
  {%- set names = [] -%}
  {%- for key in keys -%}{%- do names.append(adapter.quote(key)) -%}{%- endfor -%}
  {{ return(names | join(', ')) }}
{% endmacro %}

{% macro mirror_any_null(keys) %}
  {%- set tests = [] -%}
  {%- for key in keys -%}{%- do tests.append(adapter.quote(key) ~ ' is null') -%}{%- endfor -%}
  {{ return('(' ~ tests | join(' or ') ~ ')') }}
{% endmacro %}


{#- The mapping of changes. To decide otherwise in a project, define a macro of the same name in it. -#}
{% macro openmirroring__mirror_on_columns_added(change) %}{{ return('changes') }}{% endmacro %}
{% macro openmirroring__mirror_on_columns_reordered(change) %}{{ return('unchanged') }}{% endmacro %}
{% macro openmirroring__mirror_on_spark_types_changed(change) %}{{ return('unchanged') }}{% endmacro %}
{% macro openmirroring__mirror_on_declared_columns_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_columns_dropped(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_column_case_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_column_types_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_key_columns_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_landing_format_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_keyless_rows_gone() %}{{ return('rebuild') }}{% endmacro %}
