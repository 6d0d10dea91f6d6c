select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`status` as `status` from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
